"""Oracle: the definitions (deploy/guide/probes-and-studies.md) on three images, scored by
pycocoevalcap.
"""

import math

import numpy as np
import pytest

from helpers import interruptions
from oracles import coco_scorers
from service.contract.errors import (
    InvalidRequest,
    MetricFailed,
    RunCanceled,
    UnknownMetric,
)
from workers.bench.probing import probes, scoring
from workers.bench.probing.inputs import ProbeArguments, ProbeMaterial, prepare_material
from workers.bench.probing.scoring import ProbeScores
from workers.metrics.java.jvm import Jvm

METRICS = ("bleu_1", "bleu_4", "rouge_l", "cider_d")
PEOPLE = [
    ["a man rides a red bike", "a man on a bike", "the man is riding a bike", "a cyclist"],
    ["a dog runs on grass", "the dog is running", "a brown dog runs on the green grass"],
    ["two people sit on a bench", "a man and a woman sit", "people sitting on a wooden bench"],
]
OUTPUTS = ["a man rides a bike", "a dog runs on the grass", "two people sit on a bench"]
TRAINING = [
    "a man rides a bike",
    "a dog runs on the grass",
    "a man sits on a bench",
    "two dogs run",
    "a man on a red bike",
]
FIRST = [image[0] for image in PEOPLE]
REST = [image[1:] for image in PEOPLE]


def _run(probe, people=PEOPLE, outputs=None, training=None, metrics=METRICS, **options):
    material = ProbeMaterial("none", people, outputs, training)
    return probes.run_probe(
        probe, material, scoring.make_scorer(metrics, Jvm()), ProbeArguments(**options)
    )


def _scores(captions, references):
    return coco_scorers.scores(captions, references, METRICS)


def _approx(scores):
    return pytest.approx(scores, rel=1e-12, abs=1e-15)


def _mean(scored, what=np.mean):
    return {name: float(what([each[name] for each in scored])) for name in METRICS}


def _without(column):
    return [[*image[:column], *image[column + 1 :]] for image in PEOPLE]


def test_each_reference_column_takes_its_turn_and_references_beyond_stay():
    turns = [_scores([image[column] for image in PEOPLE], _without(column)) for column in range(3)]
    (row,) = _run("human")
    assert (row.name, row.scores) == ("RvR", _approx(_mean(turns)))
    assert row.sd == _approx(_mean(turns, np.std))
    assert row.signatures["bleu_4"].startswith("bleu_4|refs:2-3|tok:none|")
    (row,) = _run("human", columns=2)
    assert row.scores == _approx(_mean(turns[:2]))


def test_a_system_is_held_against_the_same_reference_sets():
    people, system = _run("human", outputs=OUTPUTS)
    turns = [_scores(OUTPUTS, _without(column)) for column in range(3)]
    assert (system.name, system.scores) == ("SvR", _approx(_mean(turns)))
    assert system.sd == _approx(_mean(turns, np.std))
    for name in METRICS:
        assert system.drop[name] == people.scores[name] - system.scores[name]
    above = [name for name in METRICS if system.scores[name] > people.scores[name]]
    assert system.note.startswith(f"above people in {', '.join(above)}, which is not")
    assert _run("human", outputs=["z"] * 3)[1].note == ""


def _replaced(captions, word, other):
    return [
        " ".join(other if token == word else token for token in caption.split())
        for caption in captions
    ]


def test_a_frequent_word_becomes_unknown_in_first_references_held_against_the_rest():
    unchanged, *rows = _run("frequent", frequent=["a", "man"])
    assert (unchanged.name, unchanged.share, unchanged.drop) == ("R1 unchanged", 0.0, {})
    assert unchanged.scores == _approx(_scores(FIRST, REST))
    assert [row.name for row in rows] == ["a", "man"]
    assert [row.share for row in rows] == [4 / 17, 1 / 17]
    for row in rows:
        assert row.scores == _approx(_scores(_replaced(FIRST, row.name, "UNK"), REST))
        for name in METRICS:
            assert row.drop[name] == unchanged.scores[name] - row.scores[name]
    of_all_references = _run("frequent", frequent=3)[1:]
    assert [row.name for row in of_all_references] == ["a", "on", "man"]


def test_the_unknown_word_is_one_that_no_caption_holds():
    people = [["a c", "unk b"], ["Unkk d", "a d"]]
    _, row = _run("frequent", people=people, frequent=["a"], metrics=["bleu_1"])
    assert row.scores["bleu_1"] == pytest.approx(1 / 4)  # the d


def test_rare_words_are_counted_in_training_captions():
    """No training caption holds `people` and `sit`; seven other words occur in one."""
    rows = _run("rare", training=TRAINING, thresholds=[1, 2, 30])
    assert [row.name for row in rows] == ["R1 unchanged", "T = 1", "T = 2", "T = 30"]
    assert [row.share for row in rows] == [0.0, 2 / 17, 9 / 17, 17 / 17]
    unknown = ["a man UNK a UNK bike", "a UNK UNK on UNK", "UNK UNK UNK on a UNK"]
    assert rows[2].scores == _approx(_scores(unknown, REST))
    known = _run("rare", training=FIRST * 30)[1]
    assert (known.name, known.share) == ("T = 30", 0)
    assert known.note == (
        "no first caption has a word that training captions have fewer than 30 times"
    )


def test_a_word_stands_in_another_s_place():
    people = [[*image[::-1]] for image in PEOPLE]
    _, row = _run("swap", people=people, swaps=[("people", "cyclist")])
    first = _replaced([image[0] for image in people], "people", "cyclist")
    assert (row.name, row.share) == ("people -> cyclist", 1 / 16)
    assert row.scores == _approx(_scores(first, [image[1:] for image in people]))


def test_random_words_outside_the_stop_list_become_unknown_up_to_a_share():
    seen = []
    options = {"stop_list": frozenset(["a", "on"]), "seeds": [3, 4, 5]}
    material = ProbeMaterial("none", PEOPLE)

    def score(captions, references):
        seen.append(captions)
        return ProbeScores({"length": float(len(" ".join(captions)))}, {})

    _, row = probes.run_probe("random", material, score, ProbeArguments(**options))
    assert row.share == 4 / 17
    drawn = seen[1:]
    assert len({" ".join(captions) for captions in drawn}) == 3
    for captions in drawn:
        pairs = [
            (old, new)
            for one, other in zip(FIRST, captions, strict=True)
            for old, new in zip(one.split(), other.split(), strict=True)
        ]
        assert sum(new == "unk" for _, new in pairs) == 4
        assert all(old == new for old, new in pairs if old in options["stop_list"])
        assert {new for old, new in pairs if old != new} == {"unk"}
    lengths = [len(" ".join(captions)) for captions in drawn]
    assert row.scores["length"] == pytest.approx(np.mean(lengths))
    assert row.sd["length"] == pytest.approx(np.std(lengths))
    assert _run("random", **options) == _run("random", **options)
    assert _run("random", share=0.5, **options)[1].share == 8 / 17


def test_the_single_sentence_stands_beside_the_system():
    constant, as_people, system = _run("single", outputs=OUTPUTS, training=TRAINING)
    brute = [_scores([text] * 3, PEOPLE) for text in TRAINING]
    best = int(np.argmax([scores["bleu_4"] for scores in brute]))
    assert (constant.text, constant.scores) == (TRAINING[best], _approx(brute[best]))
    turns = [_scores([constant.text] * 3, _without(column)) for column in range(3)]
    assert (as_people.scores, as_people.sd) == (
        _approx(_mean(turns)),
        _approx(_mean(turns, np.std)),
    )
    assert (system.name, system.scores) == ("system", _approx(_scores(OUTPUTS, PEOPLE)))
    by_rouge = _run("single", training=TRAINING, objective="rouge_l")[0]
    assert by_rouge.scores["rouge_l"] == max(scores["rouge_l"] for scores in brute)


def test_captions_as_written_are_tokenised_alike():
    written = [[f"{text.capitalize()}." for text in image] for image in PEOPLE]
    material = prepare_material(
        written, "regex", Jvm(), outputs=[f"{text}." for text in OUTPUTS], training=["A man."]
    )
    assert material.references[0][1] == "a man on a bike ."
    assert material.outputs[0] == "a man rides a bike ."
    assert material.training == ["a man ."]
    row, _ = probes.run_probe("human", material, scoring.make_scorer(["bleu_1"], Jvm()))
    assert "|tok:words+marks|" in row.signatures["bleu_1"]
    with pytest.raises(MetricFailed, match="a caption for each of 3 images, found 1"):
        ProbeMaterial("none", PEOPLE, ["a"])


def test_a_metric_is_computed_once_for_the_same_captions(monkeypatch):
    asked = []
    plain = scoring.postgen.score_tokens
    monkeypatch.setattr(
        scoring.postgen,
        "score_tokens",
        lambda family, *rest, **how: asked.append(family) or plain(family, *rest, **how),
    )
    material, score = ProbeMaterial("none", PEOPLE), scoring.make_scorer(["bleu", "cider"], Jvm())
    rows = probes.run_probe("human", material, score) + probes.run_probe("swap", material, score)
    assert asked == ["bleu", "cider"] * 3
    assert rows[1].scores["cider"] > 0
    assert list(rows[0].scores) == [*coco_scorers.BLEU, "cider"]


@pytest.mark.parametrize("probe", probes.PROBES)
def test_progress_ends_where_it_said_and_a_probe_can_be_stopped(probe):
    told = []
    material, score = (
        ProbeMaterial("none", PEOPLE, OUTPUTS, TRAINING),
        scoring.make_scorer(METRICS, Jvm()),
    )
    probes.run_probe(probe, material, score, progress=lambda *at: told.append(at))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    with pytest.raises(RunCanceled):
        probes.run_probe(probe, material, score, progress=interruptions.ends)


def test_unknown_probes_and_metrics_are_refused():
    with pytest.raises(InvalidRequest, match="human, frequent, rare, swap, random, single"):
        _run("curious")
    for metric in ("bleu_5", "perplexity", "caption_length"):
        with pytest.raises(UnknownMetric):
            _run("human", metrics=[metric])


ODD = {
    "no images": ProbeMaterial("none", [], [], ["a"]),
    "one reference": ProbeMaterial("none", [["a man"], ["a dog"]], ["a man", "a"], ["a man"]),
    "one image": ProbeMaterial("none", [["a man", "a woman"]], ["a man"], ["a man"]),
    "empty captions": ProbeMaterial("none", [["", ""], ["", ""]], ["", ""], [""]),
    "an empty first reference": ProbeMaterial("none", [["", "a man"], ["a", "b"]], None, ["", "a"]),
    "no training captions": ProbeMaterial("none", [["a man", "a woman"]] * 2, None, []),
    "words unheard of": ProbeMaterial("none", [["x y", "y z"]] * 2, ["q", "q"], ["q r s t"]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("probe", probes.PROBES)
def test_odd_material_gets_an_answer(name, probe):
    rows = probes.run_probe(probe, ODD[name], scoring.make_scorer(METRICS, Jvm()))
    assert rows
    for row in rows:
        assert (row.reason is None) == (set(row.scores) == set(METRICS))
        values = [*row.scores.values(), *row.drop.values(), *row.sd.values(), row.share or 0]
        assert all(map(math.isfinite, values))


@pytest.mark.parametrize(
    ("probe", "people", "options", "reason"),
    [
        ("human", [["a"], ["b"]], {}, "no image has two references"),
        ("human", PEOPLE, {"columns": 4}, "expected 1 to 3 columns of references, found 4"),
        ("human", PEOPLE, {"columns": 0}, "expected 1 to 3 columns of references, found 0"),
        ("human", [], {}, "no images"),
        ("swap", [["a"], ["b"]], {}, "no image has two references"),
        ("swap", PEOPLE, {}, "no first caption has the word 'woman'"),
        ("frequent", PEOPLE, {"frequent": ["Man"]}, "no first caption has the word 'Man'"),
        ("rare", PEOPLE, {}, "no training captions to count words in"),
        ("single", PEOPLE, {}, "no training captions to choose from"),
        ("random", PEOPLE, {"like": "an"}, "no first caption has the word 'an'"),
        ("random", PEOPLE, {"share": 0.9}, "expected 1 to 11 tokens, all outside"),
        ("random", PEOPLE, {"share": -0.1}, "expected 1 to 11 tokens, all outside"),
        ("random", PEOPLE, {"seeds": []}, "at least one seed"),
    ],
)
def test_a_row_that_cannot_be_computed_says_why(probe, people, options, reason):
    row = _run(probe, people=people, **options)[-1]
    assert reason in row.reason
    assert (row.scores, row.drop) == ({}, {})


def test_images_with_one_reference_are_left_out_where_two_are_needed():
    people = [*PEOPLE, ["a lonely caption"]]
    (found,), (expected,) = _run("human", people=people), _run("human")
    assert found.scores == expected.scores
    assert found.note == "left out: 1 of 4 images, with one reference"
    constant = _run("single", people=people, training=TRAINING)[0]
    assert constant.scores == _approx(_scores([constant.text] * 4, people))


def test_infinite_scores_leave_no_nan():
    """A distance may be infinite."""

    def score(captions, references):
        distance = float(len(captions[0])) or math.inf
        return ProbeScores({"wmd_distance": math.inf, "wmd_unit_distance": distance}, {})

    people = [["a b", "", "a"], ["a", "b", "c"]]
    material = ProbeMaterial("none", people, ["", ""], ["a"])
    for probe in probes.PROBES:
        for row in probes.run_probe(probe, material, score, ProbeArguments(frequent=["b"])):
            values = [*row.scores.values(), *row.drop.values(), *row.sd.values()]
            assert not any(map(math.isnan, values))
            assert not row.note
