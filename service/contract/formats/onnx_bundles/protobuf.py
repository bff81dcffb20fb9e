"""Reads the structure of a protobuf file from strangers: which fields are where, and nothing of
what large fields hold. Stricter than other readers, so that what is accepted here is read by them
in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10  # bytes of a number of 64 bits
_WINDOW = 1 << 16  # bytes that are read at once
MOST_FIELDS = 1_000_000  # 2 µs each; a graph of 1,000 nodes has 20,000
MOST_TEXT = 1_000  # bytes of a name


class Malformed(ValueError):
    """The text says what is wrong, and at which byte."""


@dataclass(frozen=True)
class Rule:
    """A field that a message may have: its name and wire type. `refused`: why it may not be."""

    name: str
    kind: int = BYTES
    many: bool = False
    refused: str | None = None


Message = Mapping[int, Rule]


@dataclass(frozen=True)
class Field:
    """`start` … `end`: where its bytes are in the file. `number`: the value of a varint."""

    rule: Rule
    start: int
    end: int
    number: int = 0


@dataclass
class Reader:
    """`fields_left`: how many fields may still come, in all messages together."""

    stream: IO[bytes]
    fields_left: int = MOST_FIELDS
    _at: int = 0
    _window: bytes = b""

    def fields(self, message: Message, start: int, end: int) -> Iterator[Field]:
        """The fields of the message that these bytes are. Raises Malformed on one that it does not
        have, of another wire type, or twice where it has one.
        """
        seen = set()
        at = start
        while at < end:
            tag, after = self._varint(at, end)
            rule = message.get(tag >> 3)
            if rule is None:
                raise Malformed(f"field {tag >> 3} at byte {at} is of no ONNX model that we know")
            if rule.refused:
                raise Malformed(rule.refused)
            if rule.name in seen and not rule.many:
                raise Malformed(f"{rule.name} is there twice (byte {at})")
            seen.add(rule.name)
            field = self._field(rule, tag & 7, after, end)
            yield field
            at = field.end
        if at != end:
            raise Malformed(f"a field ends at byte {at}, and what holds it at {end}")

    def text(self, field: Field) -> str:
        if field.end - field.start > MOST_TEXT:
            raise Malformed(f"{field.rule.name} at byte {field.start} is too long")
        try:
            return self._bytes(field.start, field.end).decode()
        except UnicodeDecodeError:
            raise Malformed(f"{field.rule.name} at byte {field.start} is not UTF-8") from None

    def numbers(self, field: Field) -> Iterator[int]:
        """Of a repeated varint, which is packed or not."""
        at = field.start
        while at < field.end:
            number, at = self._varint(at, field.end)
            self._count()
            yield number

    def _field(self, rule: Rule, kind: int, at: int, end: int) -> Field:
        self._count()
        packed = kind == BYTES and rule.many and rule.kind != BYTES
        if kind != rule.kind and not packed:
            raise Malformed(f"{rule.name} at byte {at} has wire type {kind}, not {rule.kind}")
        if kind == VARINT:
            number, after = self._varint(at, end)
            return Field(rule, at, after, number)
        if kind == BYTES:
            size, at = self._varint(at, end)
        else:
            size = _FIXED[kind]
        if at + size > end:
            raise Malformed(f"{rule.name} at byte {at} claims {size} bytes, {end - at} are left")
        return Field(rule, at, at + size)

    def _count(self) -> None:
        self.fields_left -= 1
        if self.fields_left < 0:
            raise Malformed(f"more than {MOST_FIELDS:,} fields")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        number = 0
        last = min(end, at + _LONGEST_VARINT)
        for place in range(at, last):
            byte = self._byte(place)
            number |= (byte & 0x7F) << (7 * (place - at))
            if byte < 0x80:
                if number >= 1 << 64:
                    break
                return number, place + 1
        raise Malformed(f"the number at byte {at} is cut off or has more than 64 bits")

    def _byte(self, at: int) -> int:
        offset = at - self._at
        if not 0 <= offset < len(self._window):
            self._window, self._at, offset = self._bytes(at, at + _WINDOW), at, 0
            if not self._window:
                raise Malformed(f"the file ends at byte {at}")
        return self._window[offset]

    def _bytes(self, start: int, end: int) -> bytes:
        self.stream.seek(start)
        return self.stream.read(end - start)
