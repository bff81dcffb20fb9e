"""The ranks of a leaderboard. Scores share a rank if they do not differ from that rank's best one
in a paired test on the same images, by the draws that are kept of each
(`service.contract.metrics.draws`). If one of the two has no draws, overlapping intervals decide:
for evaluations that were made before draws were kept, and for metrics that are no sums over images.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from statistics import median
from typing import Any

from sqlalchemy.engine import Connection, Row

from prescore.models.leaderboard import FirstDifference
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


def compare_with_first(
    first: Row[Any], row: Row[Any], known: KnownDraws, sign: int
) -> FirstDifference | None:
    """The paired test of a row against the first of the board; None where one of the two has no
    draws. `sign`: 1 where higher is better, -1 where lower is.
    """
    if row.run_id == first.run_id or not _tested(first, row, known):
        return None
    difference = sign * (first.place - row.place)
    error = draws.compute_standard_error(known[first.draws_id], known[row.draws_id])
    low, high = (difference + side * draws.CRITICAL * error for side in (-1, 1))
    if draws.do_scores_agree((first.place, row.place)):
        return FirstDifference(
            difference=difference, interval=(min(low, 0.0), max(high, 0.0)), p=1.0
        )
    p = draws.compute_p(abs(difference), error)
    return FirstDifference(difference=difference, interval=(low, high), p=p)


def is_tied_with_first(first: Row[Any], row: Row[Any], known: KnownDraws) -> bool:
    """True if a row, which is not the first itself, is not told apart from it."""
    return bool(row.run_id != first.run_id and not _differ(first, row, known))


def compute_detectable(
    first: Row[Any], rows: Iterable[Row[Any]], known: KnownDraws
) -> float | None:
    """The median of the smallest differences from the first that are found in 4 of 5 cases; None
    where no row is tested.
    """
    errors = [
        draws.compute_standard_error(known[first.draws_id], known[row.draws_id])
        for row in rows
        if row.run_id != first.run_id and _tested(first, row, known)
    ]
    return draws.DETECTABLE * median(errors) if errors else None


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
