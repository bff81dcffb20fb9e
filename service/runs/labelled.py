"""Lists filtered by labels: `label.NAME=VALUE`, several of which must all be there."""

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from service.contract.api.texts import MAX_LABELS
from service.contract.errors import InvalidRequest
from service.contract.formats import strict_json
from service.works.tables import labels


def wanted(query: Iterable[tuple[str, str]], parameters: Sequence[str]) -> dict[str, str]:
    """A query's parameters called `label.NAME`; a filter that is none must not pass in silence."""
    found = {}
    for name, value in query:
        if name.startswith("label.") and "\0" not in name + value:
            found[name.removeprefix("label.")] = value
        elif name not in parameters:
            raise InvalidRequest(
                f"expected {', '.join(parameters)} or label.NAME, found {name!r:.100}",
                [(strict_json.pointer(["query", name]), "unknown, or with a NUL in it")],
            )
    if len(found) > MAX_LABELS:
        raise InvalidRequest(f"expected at most {MAX_LABELS} labels, found {len(found)}")
    return found


def having(
    identity: sa.ColumnElement[str], wanted: Mapping[str, str]
) -> list[sa.ColumnElement[bool]]:
    """What holds for the evaluations that have these labels."""
    return [
        identity.in_(
            sa.select(labels.c.evaluation_id).where(labels.c.name == name, labels.c.value == value)
        )
        for name, value in wanted.items()
    ]
