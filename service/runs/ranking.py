"""The ranks of a leaderboard. Scores share a rank if they do not differ from that rank's best one
in a paired test on the same images, by the draws that are kept of each
(`service.contract.metrics.draws`). If one of the two has no draws, overlapping intervals decide:
for evaluations that were made before draws were kept, and for metrics that are no sums over images.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from sqlalchemy.engine import Connection, Row

from service.contract.metrics import draws
from service.engine import summaries

TESTED = 1000  # places from the top, which take 25 ms. Below, intervals decide.

KnownDraws = Mapping[int, draws.ScoreDraws]


def read_draws(connection: Connection, rows: Sequence[Row[Any]]) -> KnownDraws:
    """The draws of these rows, the best first, by id."""
    wanted = [row.draws_id for row in rows[:TESTED] if row.draws_id is not None]
    found = summaries.read_draws(connection, wanted)
    known = ((at, draws.unpack_draws(packed)) for at, packed in found.items())
    return {at: each for at, each in known if each is not None}


def rank_rows(rows: Sequence[Row[Any]], known: KnownDraws) -> list[dict[str, Any]]:
    """`rank`, `tied` and `ranked_by` of rows, the best first."""
    found: list[dict[str, Any]] = []
    leader, rank = None, 0
    for number, (row, following) in enumerate(zip_longest(rows, rows[1:]), 1):
        above = row if leader is None else leader
        leads = leader is None or _differ(leader, row, known)
        if leads:
            leader, rank = row, number
        tied = not leads or (following is not None and not _differ(row, following, known))
        by = "test" if _tested(above, row, known) else "intervals"
        found.append({"rank": rank, "tied": tied, "ranked_by": by})
    return found


def _tested(one: Row[Any], other: Row[Any], known: KnownDraws) -> bool:
    return one.draws_id in known and other.draws_id in known


def _differ(one: Row[Any], other: Row[Any], known: KnownDraws) -> bool:
    if _tested(one, other, known):
        return draws.do_scores_differ(
            (one.place, other.place), (known[one.draws_id], known[other.draws_id])
        )
    if None in (one.low, one.high, other.low, other.high):
        return bool(one.place != other.place)
    return bool(one.low > other.high or other.low > one.high)
