"""Signatures of scores, `name|field:value|…`: whether two scores were computed alike."""

from itertools import zip_longest


def differing(a: str, b: str) -> list[str]:
    """Where they differ, as `df: corpus(n=60) and corpus(n=7)`; nothing where they are alike. A
    part that names no field is known by its place.
    """
    found = []
    for place, (one, other) in enumerate(zip_longest(a.split("|"), b.split("|"), fillvalue="")):
        if one != other:
            names = [part.partition(":")[0] for part in (one, other) if ":" in part]
            field = names[0] if len(set(names)) == 1 else f"part {place + 1}"
            values = [part.removeprefix(f"{field}:") or "nothing" for part in (one, other)]
            found.append(f"{field}: {' and '.join(values)}")
    return found
