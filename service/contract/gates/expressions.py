"""Expressions of gates, linear in `baseline`: parsed, never run as code; misspelt ones repaired."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

from service.contract.errors import InvalidRequest

BASELINE = "baseline"
MAX_DEPTH = 20  # of nested parentheses

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2}(?![0-9]))?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_@:]*)"
    r"|(?P<sign>>=|<=|[><+\-*/(),%])"
    r"|(?P<space>[ \t]+)"
)


@dataclass(frozen=True)
class GateToken:
    kind: str  # number, name, sign or end
    text: str
    place: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end"


class GateReader:
    """The tokens of one text, from left to right; `refuse` raises InvalidRequest with the place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._at = 0

    @property
    def next(self) -> GateToken:
        return self._tokens[self._at]

    def skip(self) -> GateToken:
        token = self.next
        self._at += token.kind != "end"
        return token

    def take(self, *signs: str) -> str | None:
        """The next token's text if it is one of `signs`, which is then skipped; else None."""
        return self.skip().text if self.next.text in signs else None

    def demand(self, kind: str, expected: str) -> GateToken:
        return self.skip() if self.next.kind == kind else self.refuse(expected)

    def demand_sign(self, *signs: str) -> str:
        return self.take(*signs) or self.refuse(" or ".join(signs))

    def refuse(self, expected: str, at: GateToken | None = None) -> NoReturn:
        token = at or self.next
        raise InvalidRequest(
            f"{self._text!r}: expected {expected} at character {token.place + 1}, found {token}"
        )

    def _split(self) -> Sequence[GateToken]:
        tokens, at = [], 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None or found.lastgroup is None:
                strange = GateToken("end", self._text[at], at)
                self.refuse("a name, a number or a sign", strange)
            if found.lastgroup != "space":
                tokens.append(GateToken(found.lastgroup, found[0], at))
            at = found.end()
        return [*tokens, GateToken("end", "", at)]


@dataclass(frozen=True)
class LinearExpression:
    """`coefficient` * baseline + `constant`, as exact fractions."""

    coefficient: Fraction
    constant: Fraction

    def at(self, baseline: float) -> Fraction:
        return self.coefficient * convert_to_fraction(baseline) + self.constant

    def __add__(self, other: "LinearExpression") -> "LinearExpression":
        return LinearExpression(
            self.coefficient + other.coefficient, self.constant + other.constant
        )

    def times(self, factor: Fraction) -> "LinearExpression":
        return LinearExpression(self.coefficient * factor, self.constant * factor)


def convert_to_fraction(value: float) -> Fraction:
    """A float as the shortest decimal number that stands for it: 0.3 is 3/10."""
    return Fraction(repr(float(value)))


def convert_to_float(number: Fraction) -> float:
    return float(Decimal(number.numerator) / Decimal(number.denominator))


def read_sum(reader: GateReader, depth: int = 0) -> LinearExpression:
    found = _product(reader, depth)
    while sign := reader.take("+", "-"):
        found += _product(reader, depth).times(Fraction(1 if sign == "+" else -1))
    return found


def _product(reader: GateReader, depth: int) -> LinearExpression:
    found = _factor(reader, depth)
    while sign := reader.take("*", "/"):
        at = reader.next
        other = _factor(reader, depth)
        if sign == "*" and not found.coefficient:
            found = other.times(found.constant)
        elif other.coefficient:
            reader.refuse(f"a number ({BASELINE} may come once in a product, and not below /)", at)
        elif sign == "/" and not other.constant:
            reader.refuse("a number other than 0", at)
        else:
            found = found.times(other.constant if sign == "*" else 1 / other.constant)
    return found


def _factor(reader: GateReader, depth: int) -> LinearExpression:
    sign = 1
    while given := reader.take("+", "-"):
        sign = -sign if given == "-" else sign
    return _operand(reader, depth).times(Fraction(sign))


def _operand(reader: GateReader, depth: int) -> LinearExpression:
    token = reader.next
    if reader.take(BASELINE):
        return LinearExpression(Fraction(1), Fraction(0))
    if reader.take("("):
        if depth == MAX_DEPTH:
            reader.refuse(f"at most {MAX_DEPTH} nested parentheses", token)
        found = read_sum(reader, depth + 1)
        reader.demand_sign(")")
        return found
    number = reader.demand("number", f"a number, {BASELINE} or (")
    return LinearExpression(Fraction(0), Fraction(number.text))


_NAME = re.compile(r"[A-Za-z_]\w*(?:[-. ][A-Za-z0-9_]+)*")
_TURNED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_BACKWARDS = re.compile(r"\s*([^<>=]+?)\s*(>=|<=|>|<)\s*([A-Za-z_]\w*)\s*")
_SIGNS: Sequence[tuple[str, str]] = (
    (r"≥|=>", ">="),
    (r"≤|=<", "<="),
    (r"([<>])\s+=", r"\1="),
    (r"(?<![<>=])==?(?![<>=])", ">="),
    (r"(?<=[0-9]),(?=[0-9])", "."),
)


def repair_gate(text: str, is_name: Callable[[str], bool]) -> str:
    """The text with the signs of gates, points in numbers, and names as `is_name` knows them."""
    for wrong, right in _SIGNS:
        text = re.sub(wrong, right, text)
    text = _NAME.sub(lambda found: _name(found[0], is_name), text)
    backwards = _BACKWARDS.fullmatch(text)
    if backwards and is_name(backwards[3]):
        text = f"{backwards[3]} {_TURNED[backwards[2]]} {backwards[1]}"
    return text


def _name(written: str, is_name: Callable[[str], bool]) -> str:
    """A name of letters, digits and `_`, as CIDEr-D and BLEU4 are known by."""
    plain = re.sub(r"[-. ]", "_", written.lower())
    forms = plain, re.sub(r"([a-z])([0-9])$", r"\1_\2", plain)
    return next(filter(is_name, forms), written)
