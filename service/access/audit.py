"""Audit log: a row for each change, with who made it, in the same transaction."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from prescore.models.keys import ChangeAction
from service.contract.askers import Asker
from service.engine.records import Records
from service.engine.tables import audit

_OBJECT = 300  # characters
_DETAIL = 4000
_AT_ONCE = 1000  # rows that one transaction deletes


SERVICE = Asker(address="")  # what nobody asked for: the janitor does it


def note_change(
    connection: Connection, asker: Asker, action: ChangeAction, what: str, **detail: Any
) -> None:
    """Note a change. `what` names the thing that was changed, `detail` is JSON that says more."""
    text = json.dumps(detail)
    if len(text) > _DETAIL:
        text = json.dumps({"cut": text[: _DETAIL // 2]})
    row = {"at": time.time(), "action": action, "object": what[:_OBJECT], "detail": text}
    by = {"team": asker.team, "key": asker.key, "address": asker.address}
    connection.execute(audit.insert().values(**row, **by))


@dataclass(frozen=True)
class AuditQuery:
    """A request for a page of changes; `before`: the id of the last one that was seen."""

    action: str | None = None
    object: str | None = None
    limit: int = 50
    before: int | None = None


def read_changes(records: Records, asked: AuditQuery) -> tuple[Sequence[Row[Any]], int | None]:
    """A team's changes, the latest first, and the id after which the next page begins."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(asked.limit + 1)
    if asked.action is not None:
        query = query.where(audit.c.action == asked.action)
    if asked.object is not None:
        query = query.where(audit.c.object == asked.object)
    if asked.before is not None:
        query = query.where(audit.c.id < asked.before)
    found = records.read(query)
    shown = found[: asked.limit]
    return shown, shown[-1].id if len(found) > len(shown) else None


def trim_changes(records: Records, before: float, most: int = _AT_ONCE) -> int:
    """Delete changes from before that time, `most` of them; returns how many."""
    old = sa.select(audit.c.id).where(audit.c.at < before).order_by(audit.c.at).limit(most)
    identities = [row.id for row in records.read(old)]
    if identities:
        with records.transaction() as connection:
            connection.execute(audit.delete().where(audit.c.id.in_(identities)))
    return len(identities)
