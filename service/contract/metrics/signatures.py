"""Signatures say how scores were computed, as `name|field:value|…`: equal ones compare."""

import re
from collections.abc import Mapping


def difference(one: str, other: str) -> str | None:
    """The fields that differ, with what each side has there; None where there are none."""
    if one == other:
        return None
    ours, theirs = _fields(one), _fields(other)
    return ", ".join(
        f"{name}: {ours.get(name, 'nothing')} and {theirs.get(name, 'nothing')}"
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    )


def _fields(signature: str) -> Mapping[str, str]:
    """Its parts by what stands before the first `:` or `=`; a part without one is its own name."""
    first, *rest = signature.split("|")
    found = {"name": first}
    for part in rest:
        name, *value = re.split("[:=]", part, maxsplit=1)
        found[name] = value[0] if value else "yes"
    return found
