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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "metric", "orders", "past"),
    [
        ("flickr8k", "cider_d", 40, 11),
        ("flickr30k", "cider_d", 40, 11),
        ("mscoco", "cider_d", 15, 11),
        ("flickr8k", "cider_d", 40, 4),
        ("flickr8k", "bleu_4", 15, 11),
        ("flickr8k", "meteor", 8, 11),
    ],
)
def test_past_systems_spare_images(data, jvm, capsys, dataset, metric, orders, past):
    """Each of twelve captioners with others as its history, beside one of them as its baseline."""
    captioners = [early.published(data, name, metric, jvm, dataset) for name in systems.NAMES]
    others = ["random", "stratified"] if (metric, past) == ("cider_d", 11) else []
    found = {
        way: early.left_out(captioners, metric, way, orders, past)
        for way in (*others, "baseline", "history")
    }
    labels = {"history": f"{past} systems"}
    cells = [_row_of(dataset, metric, labels.get(way, way), each) for way, each in found.items()]
    right = np.mean([1 - trial.above - trial.below for trial in found["history"]])
    chance = 2.5 * (spending.ERROR / (orders * len(captioners))) ** 0.5
    assert right > 1 - spending.ERROR - chance
    usual, ours = (_root(found[way])[1] for way in ("baseline", "history"))
    assert ours < 0.85 * usual
    tables.tell(cells, capsys, PAGE)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_a_third_of_the_variance_is_left_over(data, capsys, dataset):
    """Of CIDEr-D, whose influences are the images' scores; with slopes of all images."""
    found = [early.published(data, name, "cider_d", None, dataset) for name in systems.NAMES]
    scores = np.array([each.statistics["cider_d"] for each in found])
    scores -= scores.mean(axis=1, keepdims=True)
    left = []
    for at, own in enumerate(scores):
        others = np.delete(scores, at, axis=0).T
        one, every = others.mean(axis=1, keepdims=True), others
        fits = [table @ np.linalg.lstsq(table, own)[0] for table in (one, every)]
        freedom = np.sqrt(len(own) / (len(own) - 12))
        left.append([own.std(), (own - fits[0]).std(), (own - fits[1]).std() * freedom])
    deviations = np.sqrt(np.mean(np.square(left), axis=0))
    assert 0.25 < (deviations[2] / deviations[0]) ** 2 < 0.35
    error = deviations[2] * np.sqrt(1 / 100 - 1 / scores.shape[1])
    told = [f"{each:.3f}" for each in (*deviations, error)]
    tables.tell([[dataset, *told]], capsys, PAGE)


def _root(trials):
    """The root mean square of errors after so many images."""
    return np.sqrt(np.mean([trial.errors**2 for trial in trials], axis=(0, 1)))


def _row_of(dataset, metric, way, trials):
    sides = [[getattr(trial, side) for trial in trials] for side in ("above", "below")]
    right = 1 - np.sum(sides, axis=0)
    shares = np.mean([trial.shares for trial in trials], axis=0)
    absolute = np.mean([np.abs(trial.errors[:, 1]) for trial in trials])
    held = np.mean([trial.held for trial in trials], axis=(0, 1))
    counted = *held, *np.mean(sides, axis=1), right.mean(), right.min()
    return [
        *(dataset, metric, way),
        *(f"{each:.4f}" for each in (*_root(trials), absolute)),
        *(f"{100 * each:.1f}" for each in counted),
        *(f"{100 * share:.0f}" for share in shares),
    ]
