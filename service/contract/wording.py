"""Wording of messages: a field's fault from pydantic's error, counts, near names."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

_LONGEST = 60  # characters of what was found
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("string_type", "string_sub_type", "string_unicode"), "a text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    "int_parsing_size": "a whole number of usual size",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "mapping_type"), "an object"),
    **dict.fromkeys(("model_attributes_type", "dataclass_type"), "an object"),
    "none_required": "null",
}
_CALLED: Mapping[str, tuple[str, ...]] = {  # fields by what others call them
    "metrics": ("postgen", "pregen"),
    "metric": ("postgen", "pregen"),
    "postgen": ("metrics",),
    "model": ("checkpoint",),
    "predictions": ("captions",),
    "results": ("captions",),
    "split": ("dataset",),
    "beam": ("decoding",),
    "timeout": ("deadline",),
}
FieldWording = Callable[[Mapping[str, Any], Any], str]  # from pydantic's context and what was found


def _bound(words: str, name: str) -> FieldWording:
    return lambda context, value: f"expected {words} {context[name]}, found {_found(value)}"


def _length(words: str, name: str, of: str) -> FieldWording:
    def tell(context: Mapping[str, Any], value: Any) -> str:
        bound, length = context[name], context.get("actual_length")
        many = of if bound == 1 else f"{of}s"
        return f"expected {words} {bound} {many}, found {len(value) if length is None else length}"

    return tell


def _one_of(context: Mapping[str, Any], value: Any) -> str:
    expected = str(context["expected"])
    known = re.findall("'([^']*)'", expected)
    question = suggest_names(value, known) if isinstance(value, str) else ""
    return f"expected {expected}, found {_found(value)}{question}"


_OTHERS: Mapping[str, FieldWording] = {
    "missing": lambda *_: "expected a value, found none",
    "union_tag_invalid": lambda context, _: (
        f"expected {context['expected_tags']}, found {_found(context['tag'])}"
    ),
    "literal_error": _one_of,
    "enum": _one_of,
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "greater_than": _bound("more than", "gt"),
    "less_than": _bound("less than", "lt"),
    "string_too_short": _length("at least", "min_length", "character"),
    "string_too_long": _length("at most", "max_length", "character"),
    "too_short": _length("at least", "min_length", "item"),
    "too_long": _length("at most", "max_length", "item"),
    "string_pattern_mismatch": lambda context, value: (
        f"expected a text like {context['pattern']}, found {_found(value)}"
    ),
}


def describe_field_error(error: Mapping[str, Any], known: Collection[str] = ()) -> str:
    """One sentence; pydantic's own where the type of the error has none here. `known`: the fields
    of the object, if they are known, in which an unknown one was found.
    """
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown_field(str(error["loc"][-1]), known)
    if kind in _KINDS:
        return f"expected {_KINDS[kind]}, found {_found(value)}"
    if kind in _OTHERS:
        return _OTHERS[kind](error.get("ctx", {}), value)
    return str(error["msg"]).removeprefix("Value error, ")


def count_noun(number: int, one: str) -> str:
    """`1 image`, `2 images`."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def describe_too_many_runs(owner: str, limit: str, count: int, most: float) -> str:
    """`You have 1 unfinished run; your limit is 1. Wait until it ends, or cancel it.`, of the owner
    "You have" and the limit "your".
    """
    more = int(count - most) + 1
    which = "it" if count == 1 else "one" if more == 1 else str(more)
    ended = f"{which} end" if which.isdecimal() else f"{which} ends"
    has = f"{owner} {count_noun(count, 'unfinished run')}; {limit} limit is {most:.0f}"
    return f"{has}. Wait until {ended}, or cancel {which}."


def _unknown_field(name: str, known: Collection[str]) -> str:
    called = [field for field in _CALLED.get(name, ()) if field in known]
    question = suggest_names(name, known) or word_suggestion(called)
    expected = f"; expected one of {', '.join(known)}" if known else ""
    return f"unknown field{question or expected}"


def _found(value: Any) -> str:
    """A value in JSON's terms; of a large one only what it is."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value[:_LONGEST])
    return f"{value!r:.{_LONGEST}}"


QUESTION = "; did you mean"
MOST_SUGGESTIONS = 3
LEAST_ALIKE = 0.6
LEAST_PART = 4  # characters of a part of a name
LONGEST_NAME = 100  # characters that are compared; the search takes the square of them
MOST_COMPARED = 2000  # names


def suggest_names(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the most alike names, the most alike first; empty where none is.
    Small and capital letters are alike.
    """
    return word_suggestion(_alike(name, known))


def suggest_labels(wanted: str, known: Iterable[str]) -> str:
    """The same for a label, NAME=VALUE: by its value, where its name is known, else by its name."""
    name, _, value = wanted.partition("=")
    values: dict[str, list[str]] = {}
    for each in islice(known, MOST_COMPARED):
        values.setdefault(each.partition("=")[0], []).append(each.partition("=")[2])
    if name in values:
        return word_suggestion([f"{name}={one}" for one in _alike(value, values[name])])
    return word_suggestion(
        [
            f"{near}={one}"
            for near in _alike(name, values)
            for one in _alike(value, values[near]) or values[near]
        ][:MOST_SUGGESTIONS]
    )


def _alike(name: str, known: Iterable[str]) -> list[str]:
    compared = {each.lower(): each for each in islice(known, MOST_COMPARED)}
    found = difflib.get_close_matches(
        name[:LONGEST_NAME].lower(), compared, MOST_SUGGESTIONS, LEAST_ALIKE
    )
    return [compared[each] for each in found]


def suggest_longer_names(name: str, known: Iterable[str]) -> str:
    """The same with the first names of which the name is a part."""
    if not LEAST_PART <= len(name) <= LONGEST_NAME:
        return ""
    return word_suggestion(
        list(dict.fromkeys(each for each in known if name.lower() in each))[:MOST_SUGGESTIONS]
    )


def word_suggestion(names: Sequence[str]) -> str:
    """The question with these names; empty where there are none."""
    return f"{QUESTION} {' or '.join(names)}?" if names else ""
