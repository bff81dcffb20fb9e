"""Why a board has no scores, and what there is instead."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract import wording
from service.contract.metrics import catalogue
from service.engine.tables import boards, score_rows
from service.runs import base, search
from service.runs.boards.finding import Asked, Found

_NAMED = 5


def because(connection: Connection, found: Found, asked: Asked) -> str | None:
    """One sentence; None where the board has scores."""
    if found.board is not None:
        return None
    on_split = base.on_split(found.pinned, boards), boards.c.listed > 0
    own = boards.c.metric == catalogue.find_metric(asked.metric).name
    listed = connection.execute(sa.select(boards.c.id).where(*on_split, own)).scalars().all()
    if found.others:
        return f"no score of {asked.metric} has this signature; `others` has those that there are"
    if listed and asked.labels:
        return _unlabelled(asked.labels, _labels(connection, listed))
    if listed:
        return f"no score of {asked.metric} has this signature"
    many = sa.func.sum(boards.c.listed).desc(), boards.c.metric
    query = sa.select(boards.c.metric).where(*on_split).group_by(boards.c.metric).order_by(*many)
    metrics = connection.execute(query).scalars().all()
    if shown := [catalogue.find_shown_name(name) for name in metrics]:
        return f"no evaluation of the whole split has {asked.metric} yet; there are {_few(shown)}"
    return "no evaluation of the whole split has scores yet; POST /v1/evaluations begins one"


def _labels(connection: Connection, listed: Sequence[int]) -> list[str]:
    """Labels of evaluations on these boards, the latest first."""
    rows = score_rows.c
    query = sa.select(rows.run_id, rows.created_at).where(rows.board_id.in_(listed), rows.listed)
    return search.latest_labels(connection, query)


def _unlabelled(wanted: Mapping[str, str], known: Sequence[str]) -> str:
    asked = [search.shown_label(f"{name}={value}") for name, value in wanted.items()]
    near_ones = (wording.suggest_labels(one, known) for one in asked if one not in known)
    instead = f"; the latest labels are {_few(known)}" if known else "; no score has a label"
    question = next(filter(None, near_ones), instead)
    return f"no score has the label{'s' * (len(asked) > 1)} {' and '.join(asked)}{question}"


def _few(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])
