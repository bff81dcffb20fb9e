"""Early verdicts on real captioners: as rarely wrong as is promised, and how much they spare."""

from pathlib import Path

import numpy as np
import pytest

from parity import early, tables
from workers.analysis import looks as spending

PAGE = Path(__file__).parent / "EARLY.md"
LAST = 14
PAIRS = [  # run and checkpoint, of both
    (("merge", LAST), ("merge", 13)),
    (("merge", LAST), ("init", LAST)),
    (("init", LAST), ("merge", LAST)),
    (("init", 9), ("init", 8)),
    (("init", 7), ("init", 12)),
]
SYSTEMS = [("merge_1", "init_1"), ("pre_1", "pre_2"), ("par_1", "merge_2"), ("init_3", "par_3")]
ORDERS, FEWER = 1000, 300


def _row(data, metric, pairs, jvm=None, *, baseline, regressed, **how):
    """The worst of all pairs, and the mean share."""
    found = []
    for one, other in pairs:
        make = early.published if isinstance(one, str) else early.checkpoint
        given = [(each,) if isinstance(each, str) else each for each in (one, other)]
        captioner, past = (make(data, *each, metric, jvm) for each in given)
        past = past if baseline else None
        found.append(early.tried(metric, captioner, past, regressed=regressed, **how))
    worst = [max(getattr(trial, side) for trial in found) for side in ("above", "below")]
    cover = min(1 - trial.above - trial.below for trial in found)
    return worst, cover, np.mean([trial.shares for trial in found], axis=0)


def test_the_captions_are_scored_as_they_were_when_they_were_kept(data):
    kept = np.load(data / "runs" / "merge.npz")["image_cider_d"][LAST]
    found = early.checkpoint(data, "merge", LAST, "cider_d").statistics["cider_d"]
    assert found == pytest.approx(kept, abs=2e-3)


@pytest.mark.slow
def test_verdicts_are_as_rarely_wrong_as_promised(data, jvm, capsys):
    ways = [(False, False), (False, True), (True, False), (True, True)]
    rows = []
    for metric in early.FAMILIES:
        for baseline, regressed in ways if metric == "cider_d" else [(False, True), (True, True)]:
            how = {"baseline": baseline, "regressed": regressed}
            orders = ORDERS if metric == "cider_d" else FEWER
            rows.append(("two runs", metric, how, PAIRS, {"orders": orders}))
    baseline = {"baseline": True, "regressed": False}
    rows.append(("12 systems", "cider_d", baseline, SYSTEMS, {"orders": ORDERS}))
    often = {"baseline": True, "regressed": True}
    looks = {"orders": FEWER, "looks": early.OFTEN}
    rows.append(("two runs", "cider_d", often, PAIRS, looks))
    cells = []
    for who, metric, how, pairs, more in rows:
        worst, cover, shares = _row(data, metric, pairs, jvm, **how, **more)
        chance = 2.5 * (spending.ERROR / more["orders"]) ** 0.5
        assert max(worst) < spending.ERROR + chance, (who, metric, how)
        assert cover > 1 - spending.ERROR - chance or "looks" in more, (who, metric, how)
        cells.append(
            [
                *(who, metric, str(len(more.get("looks", early.SERVICE)))),
                *("yes" if how[name] else "no" for name in ("regressed", "baseline")),
                *(f"{100 * each:.1f}" for each in (*worst, cover)),
                *(f"{100 * share:.0f}" for share in shares),
            ]
        )
    tables.tell(cells, capsys, PAGE)
