"""Which metric of which gate images are taken from, and which of them fell most."""

import math
from dataclasses import dataclass

import pytest

from prescore.models.captions import Caption
from prescore.models.evaluations import Evaluation
from service.contract.errors import BlobMissing, NotFound
from service.runs import caption_drops, scored_captions

NAN, INF = math.nan, math.inf


@dataclass
class _Index:
    places: list[int]


class _Scored:
    """Stored captions with their scores by metric, as the files have them."""

    def __init__(self, places=None, **scores):
        self.scores = scores
        self.index = _Index(places or list(range(len(next(iter(scores.values()))))))

    def column(self, name):
        return self.scores[name]

    def some_rows(self, places, only):
        return [
            Caption(
                image=f"{at}", caption="", scores={name: self.scores[name][at] for name in only}
            )
            for at in places
        ]


def _evaluation(*gates):
    return Evaluation.model_validate(
        {"id": "ev_now", "status": "succeeded", "dataset": {"name": "x"}, "gates": gates}
    )


def _gate(verdict, baseline="ev_past", **differences):
    scores = {
        name: {"baseline": past, "difference": difference, "evaluation": baseline}
        for name, (past, difference) in differences.items()
    }
    return {"gate": f"{verdict}: {', '.join(scores)}", "verdict": verdict, "scores": scores}


def _find(monkeypatch, evaluation, **stored):
    def find(_, identity):
        found = stored.get(identity, NotFound(f"no {identity}"))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(scored_captions, "find_scored_captions", find)
    return caption_drops.find_caption_drops(None, evaluation)


@pytest.mark.parametrize(
    ("metric", "now", "past", "expected"),
    [
        ("cider_d", [0.9, 0.1, 0.5, 0.0, 0.4], [1.0, 0.9, 0.5, 0.5, 0.1], ["1", "3", "0"]),
        ("wmd_distance", [0.9, 0.1, 0.5, 0.8], [0.8, 0.9, 0.5, 0.1], ["3", "0"]),
        ("cider_d", [0.0] * 5, [0.5] * 5, ["0", "1", "2"]),
        ("cider_d", [NAN, -INF, 0.0, INF, 0.1], [1.0, 1.0, NAN, INF, 0.2], ["4"]),
        ("cider_d", [0.5, 0.5], [0.5, 0.4], []),
        ("cider_d", [], [], []),
    ],
)
def test_the_images_that_fell_most_come_first(monkeypatch, metric, now, past, expected):
    evaluation = _evaluation(_gate("failed", **{metric: (0.5, -0.1)}))
    sides = {"ev_now": _Scored(**{metric: now}), "ev_past": _Scored(**{metric: past})}
    found = _find(monkeypatch, evaluation, **sides)
    assert [each.image for each in found.images] == expected
    assert found.metric == (metric if expected else None)
    for each in found.images:
        at, scores = int(each.image), each.scores[metric]
        assert (scores.a, scores.b) == (now[at], past[at])


WORSE = {
    "ev_now": _Scored(bleu_1=[0.1], cider_d=[0.1]),
    "ev_past": _Scored(bleu_1=[1], cider_d=[1]),
}
FAILED = _gate("failed", cider_d=(1.0, -0.2))
UNDECIDED = _gate("undecided", bleu_1=(1.0, -0.9))
PASSED = _gate("passed", bleu_1=(1.0, -0.9))


@pytest.mark.parametrize(
    ("gates", "gate", "metric"),
    [
        ([PASSED, UNDECIDED, FAILED], FAILED, "cider_d"),
        ([PASSED, UNDECIDED], UNDECIDED, "bleu_1"),
        ([PASSED], PASSED, "bleu_1"),
        ([_gate("passed", cider_d=(1.0, 0.2))], None, None),
        ([_gate("failed", cider_d=(1.0, 0.2))], "failed: cider_d", "cider_d"),
        (
            [_gate("failed", cider_d=(4.0, -0.4), bleu_1=(0.5, -0.3))],
            "failed: cider_d, bleu_1",
            "bleu_1",
        ),
        ([_gate("failed", perplexity=(9.0, 3.0)), UNDECIDED], UNDECIDED, "bleu_1"),
        ([_gate("failed", baseline=None, cider_d=(None, None)), PASSED], PASSED, "bleu_1"),
        ([_gate("failed", cider_d=(1.0, None))], None, None),
        ([_gate("failed", baseline="ev_gone", cider_d=(1.0, -0.2)), PASSED], PASSED, "bleu_1"),
        ([_gate("not_comparable", cider_d=(1.0, -0.2))], None, None),
    ],
)
def test_the_metric_is_that_of_the_first_gate_that_says_most(monkeypatch, gates, gate, metric):
    found = _find(monkeypatch, _evaluation(*gates), **WORSE)
    assert found.gate == (gate["gate"] if isinstance(gate, dict) else gate)
    assert found.metric == metric


@pytest.mark.parametrize(
    "past",
    [
        NotFound("deleted"),
        BlobMissing("sha256:0", "gone"),
        _Scored(bleu_4=[1.0, 1.0]),
        _Scored(places=[0, 2], cider_d=[1.0, 1.0]),
    ],
)
def test_what_is_not_stored_of_the_same_images_is_left_out(monkeypatch, past):
    stored = {"ev_now": _Scored(cider_d=[0.1, 0.2]), "ev_past": past}
    assert _find(monkeypatch, _evaluation(FAILED), **stored).images == ()
