"""Early verdicts on real captioners: as rarely wrong as is promised, and how much they spare."""

from pathlib import Path

import numpy as np
import pytest

from parity import early, systems, tables
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


def _tell_trials(who, metric, way, trials):
    errors = np.stack([trial.errors for trial in trials])
    root = np.sqrt((errors**2).mean(axis=(0, 1)))
    sides = [[getattr(trial, side) for trial in trials] for side in ("above", "below")]
    right = 1 - np.sum(sides, axis=0)
    shares = 100 * np.mean([trial.shares for trial in trials], axis=0)
    return [
        *(who, metric, way),
        *(f"{each:.4f}" for each in (*root, np.abs(errors[:, :, 1]).mean())),
        *(f"{100 * each:.1f}" for each in (np.mean(sides[0]), np.mean(sides[1]), right.mean())),
        *(f"{share:.0f}" for share in shares),
    ]


@pytest.mark.slow
def test_past_systems_spare_images(data, jvm, capsys):
    """Of two dozen orders or more of each captioner; each is left out of its own history."""
    sets = [(each, "cider_d", 100, 11) for each in systems.DATASETS]
    sets += [("flickr8k", "cider_d", 100, 4), ("flickr8k", "bleu_4", 50, 11)]
    sets += [("flickr30k", "bleu_4", 50, 11), ("flickr8k", "meteor", 25, 11)]
    cells = []
    for dataset, metric, orders, past in sets:
        named = (early.published(data, n, metric, jvm, dataset) for n in systems.NAMES)
        captioners = list(named)
        usual = None
        for way in ("random", "baseline", "history") if past == 11 else ("history",):
            trials = early.left_out(captioners, metric, way, orders, past)
            label = way if way != "history" else f"history: {past}"
            cells.append(_tell_trials(dataset, metric, label, trials))
            right = np.mean([1 - trial.above - trial.below for trial in trials])
            chance = 2.5 * (spending.ERROR / (orders * len(trials))) ** 0.5
            assert right > 1 - spending.ERROR - chance, (dataset, metric, way)
            error = np.sqrt(np.mean([(trial.errors[:, 1] ** 2).mean() for trial in trials]))
            usual = error if way == "baseline" else usual
        assert usual is None or error < 0.85 * usual, (dataset, metric)
    tables.tell(cells, capsys, PAGE)
