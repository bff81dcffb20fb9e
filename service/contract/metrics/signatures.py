"""Signatures say how a score was computed, `name|field:value|…`; equal ones can be compared."""

import re
from collections.abc import Mapping


def sign_brought_columns(tokenizer: str | None, units: str | None) -> str:
    """Sign columns that somebody's own code computed; `units` where they have pieces, no tokenizer
    where scores do not depend on the tokens.
    """
    return add_units("brought" if tokenizer is None else f"brought|tok:{tokenizer}", units)


def add_units(how: str, units: str | None) -> str:
    """`units` where tokens are pieces of words: what was scored of them."""
    return how if units is None else f"{how}|units:{units}"


def add_plugin(how: str, plugin: str | None) -> str:
    """`plugin` where a package on the worker computed the probabilities: which one."""
    return how if plugin is None else f"{how}|plugin:{plugin}"


def sign_pregen(how: str) -> str:
    return f"pregen|{how}|v:1"


def describe_signature_difference(
    one: str, other: str, names: tuple[str, str] = ("the first", "the second")
) -> str | None:
    """Describe the fields that differ, with both values; None where the signatures are equal.
    `names`: of the two, for people.
    """
    if one == other:
        return None
    ours, theirs = _fields(one), _fields(other)
    if ("brought" in ours) != ("brought" in theirs):
        brought, computed = names if "brought" in ours else names[::-1]
        return f"{brought} was brought as columns, {computed} was computed from a checkpoint"
    return ", ".join(
        f"{name}: {ours.get(name, 'nothing')} and {theirs.get(name, 'nothing')}"
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    )


def _fields(signature: str) -> Mapping[str, str]:
    """The values by field name, which ends at the first `:` or `=`; a part without them: `yes`."""
    first, *rest = signature.split("|")
    found = {"name": first}
    for part in rest:
        name, *value = re.split("[:=]", part, maxsplit=1)
        found[name] = value[0] if value else "yes"
    return found
