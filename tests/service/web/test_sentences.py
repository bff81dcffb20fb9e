"""Sentences of the views against answers of the API: each claim has an oracle, computed here from
the answer. A sentence that says more than the numbers is a defect.
"""

import json
import random
import re

import pytest

from service.contract.gates import gates
from service.contract.gates.evidence import BaselineScore, GateEvidence, ScoreBounds

pytestmark = pytest.mark.processes
TITLES = {"cider_d": "CIDEr-D", "meteor": "METEOR", "spice": "SPICE", "bleu_4": "BLEU-4"}
HIGHER = {"cider_d": True, "meteor": True, "spice": True, "bleu_4": True, "wmd": False}


@pytest.fixture(scope="module")
def told(script):
    """A function: the sentences that a function of the module makes of these arguments."""

    def tell(function, *arguments):
        return script(f"""
            const sentences = await load("parts/sentences");
            return {json.dumps(arguments)}.map((each) => {{
                const found = sentences.{function}(each);
                const texts = found && [found.claim, found.detail];
                return texts && texts.map((text) => text.replaceAll("\\u00a0", " "));
            }});
        """)

    return tell


def _number(value):
    text = f"{abs(value):.3f}"
    return f"−{text}" if value < 0 and float(text) else text


def _signed(value):
    return f"+{_number(value)}" if value > 0 and float(_number(value)) else _number(value)


def _standing(name, value, rank, **more):
    labels = {"file": name} if name else {}
    return {
        "evaluation": f"ev_{name}",
        "labels": labels,
        "value": value,
        "interval": [value - 0.03, value + 0.03],
        "rank": rank,
        "tied": False,
        "scores": {},
        "equal": 0,
        "equal_ones": [],
        **more,
    }


def _board(items, **more):
    return {
        "items": items,
        "next": None,
        "metric": "cider_d",
        "firsts": {},
        "detectable": None,
    } | more


def test_a_leaderboard_names_its_leader_and_how_many_it_cannot_be_told_from(told):
    drawn = random.Random(4)
    boards, wanted = [], []
    for _ in range(20):
        many = drawn.randint(2, 9)
        values = sorted((drawn.uniform(0, 2) for _ in range(many)), reverse=True)
        tied = drawn.randint(1, many)
        ranks = [1] * tied + list(range(tied + 1, many + 1))
        boards.append(
            _board(
                [
                    _standing(f"s{at}", *pair)
                    for at, pair in enumerate(zip(values, ranks, strict=True))
                ]
            )
        )
        start = f"s0 leads CIDEr-D with {_number(values[0])}"
        end = (
            ", apart from all others."
            if tied == 1
            else f", but {tied - 1} other{'s' * (tied > 2)} cannot be told apart from it."
        )
        wanted.append([start + end, ""])
    assert told("leaderboardSentence", *boards) == wanted


def test_a_page_of_ties_may_go_on(told):
    first = _board([_standing("a", 0.5, 1), _standing("b", 0.4, 1)], next="more")
    assert "at least 1 other cannot" in told("leaderboardSentence", first)[0][0]
    ended = _board([_standing("a", 0.5, 1), _standing("b", 0.4, 2)], next="more")
    assert "at least" not in told("leaderboardSentence", ended)[0][0]


def test_a_name_from_right_to_left_leaves_the_rest_of_a_sentence_alone(told):
    name = "a\u202eb"
    (found,) = told("leaderboardSentence", _board([_standing(name, 0.5, 1)]))
    assert found[0].startswith(f"\u2068{name}\u2069 is the only system")


def test_a_leaderboard_tells_what_it_can_show_and_other_metrics_firsts(told):
    items = [_standing("a", 0.5, 1), _standing("b", 0.4, 1), _standing("c", 0.1, 3)]
    full = _board(
        items, detectable=0.0204, firsts={"cider_d": "ev_a", "meteor": "ev_b", "spice": "ev_a"}
    )
    (found,) = told("leaderboardSentence", full)
    shown = "A true difference of about 0.020 from the first is found 4 times in 5."
    assert found[1] == f"{shown} METEOR puts b first."
    alone, empty = told("leaderboardSentence", _board(items[:1]), _board([]))
    assert alone == ["a is the only system here: CIDEr-D 0.500 [0.470, 0.530].", ""]
    assert empty is None


def _compared(difference, p, detectable=0.03):
    ends = [difference - 0.02, difference + 0.02]
    return {
        "a": 0.4 + difference,
        "b": 0.4,
        "difference": difference,
        "interval": ends,
        "p": p,
        "minimum_detectable": detectable,
    }


def _comparison(script, scores, words=()):
    comparison = {"scores": scores, "status": "succeeded"}
    specs = {
        name: {
            "family": "postgen" if name in HIGHER else "pregen",
            "higher_is_better": HIGHER.get(name),
        }
        for name in scores
    }
    return script(f"""
        const sentences = await load("parts/sentences");
        const specs = new Map(Object.entries({json.dumps(specs)}));
        const comparison = {json.dumps(comparison)};
        const found = sentences.comparisonSentence({{
            comparison, a: "one", b: "two", specs, words: {json.dumps(words)},
        }});
        return [found.claim, found.detail].map((text) => text.replaceAll("\\u00a0", " "));
    """)


@pytest.mark.parametrize(
    ("metric", "difference", "p", "claim"),
    [
        (
            "cider_d",
            0.021,
            0.003,
            "one is 0.021 better than two in CIDEr-D [0.001, 0.041], p = .003.",
        ),
        (
            "cider_d",
            -0.021,
            0.049,
            "one is 0.021 worse than two in CIDEr-D [0.001, 0.041], p = .049.",
        ),
        (
            "cider_d",
            0.006,
            0.56,
            "No difference in CIDEr-D is shown: +0.006 [−0.014, 0.026], p = .560.",
        ),
        (
            "cider_d",
            0.021,
            0.05,
            "No difference in CIDEr-D is shown: +0.021 [0.001, 0.041], p = .050.",
        ),
        ("wmd", -0.021, 0.0001, "one is 0.021 better than two in WMD [0.001, 0.041], p < .001."),
        (
            "cider_d",
            0.006,
            None,
            "CIDEr-D differs by +0.006 [−0.014, 0.026]; no test of it exists.",
        ),
    ],
)
def test_a_comparison_says_better_where_a_test_says_so_alone(script, metric, difference, p, claim):
    found = _comparison(script, {metric: _compared(difference, p)})
    assert found[0].startswith(claim.removesuffix("."))
    shows = "A difference of 0.030 would be found 4 times in 5."
    assert (shows in found[1]) == (" than two " not in claim)


def test_other_metrics_are_told_where_a_test_tells_them(script):
    scores = {
        "cider_d": _compared(0.006, 0.56),
        "meteor": _compared(-0.02, 0.01),
        "spice": _compared(0.02, 0.2),
        "wmd": _compared(0.02, 0.01),
        "perplexity": _compared(0.02, 0.001),
    }
    assert _comparison(script, scores)[1].endswith(" METEOR and WMD prefer two.")
    scores["cider_d"] = _compared(-0.2, 0.01)
    words = [{"a": a, "b": b, "images": 9} for a, b in ("ab", "cd", "ef", "gh")]
    assert _comparison(script, scores, words)[1] == (
        "METEOR and WMD prefer two. No difference is shown in SPICE (p = .200). "
        "one says a for b (9), c for d (9), e for f (9)."
    )


def _fall(kind, difference, step=5, metric="cider_d", run="merge-64"):
    return {
        "metric": metric,
        "kind": kind,
        "step": step,
        "value": 3.34,
        "expected": 4.1,
        "difference": difference,
        "interval": [difference - 0.25, difference + 0.25],
        "beside": {"evaluation": "ev_1", "labels": {"run": run}} if kind != "trend" else None,
    }


def _score(value, family="postgen", higher=True):
    ends = [value - 0.1, value + 0.1]
    return {
        "value": value,
        "interval": ends,
        "family": family,
        "higher_is_better": higher,
        "signature": "",
    }


def _run(**more):
    return {
        "id": "ev_x",
        "status": "succeeded",
        "labels": {},
        "scores": {},
        "gates": [],
        "falls": [],
        "warnings": [],
        "tasks": [],
        "error": None,
        "forecast": None,
        "estimate": None,
        "health": None,
    } | more


def _steps(falls, values=(0.1, 2.0, 3.3, 4.3)):
    return [
        _run(step=step, falls=falls.get(step, []), scores={"cider_d": _score(value)})
        for step, value in enumerate(values, 1)
    ]


def test_a_training_tells_its_worst_fall_against_others_first(told):
    falls = {3: [_fall("step", -1.5, step=3)], 4: [_fall("trend", -0.4, 4), _fall("run", -1.03, 4)]}
    given = [
        {"run": "nightly", "metric": "cider_d", "steps": _steps(falls)},
        {"run": "nightly", "metric": "cider_d", "steps": _steps({3: [_fall("trend", -0.4, 3)]})},
        {"run": "nightly", "metric": "cider_d", "steps": _steps({})},
        {"run": "nightly", "metric": "cider_d", "steps": []},
    ]
    words = [{"a": a, "b": b, "images": 9} for a, b in ("ab", "cd", "ef", "gh")]
    given += [each | {"words": words} for each in given[:2]]
    best = "Its best CIDEr-D is 4.300 [4.200, 4.400] at step 4."
    assert told("trainingSentence", *given) == [
        [
            "Step 4 is 1.030 CIDEr-D below merge-64 at the same step.",
            f"1 other step is worse than expected, too. {best}",
        ],
        [
            "Step 3 is 0.400 CIDEr-D below its trend.",
            best,
        ],
        [
            (
                "No step of nightly is worse than expected; "
                "its best CIDEr-D is 4.300 [4.200, 4.400] at step 4."
            ),
            "",
        ],
        None,
        [
            (
                "Step 4 is 1.030 CIDEr-D below merge-64 at the same step; "
                "it says a for b (9), c for d (9), e for f (9)."
            ),
            f"1 other step is worse than expected, too. {best}",
        ],
        ["Step 3 is 0.400 CIDEr-D below its trend.", best],
    ]


def test_a_training_tells_how_its_latest_step_is_beside_the_one_that_it_was_behind(told):
    steps = _steps({3: [_fall("run", -1.03, 3)]}, (0.1, 2.0, 2.3, 4.3))
    rival = {"run": "merge-64", "steps": _steps({}, (0.1, 2.0, 3.3, 4.5))}
    given = {"run": "nightly", "metric": "cider_d", "steps": steps}
    beside, early = {"others": [rival]}, {"others": [rival | {"steps": rival["steps"][:3]}]}
    both, alone, unmeasured = told("trainingSentence", given | beside, given, given | early)
    best = "Its best CIDEr-D is 4.300 [4.200, 4.400] at step 4."
    own, other = "4.300 [4.200, 4.400]", "4.500 [4.400, 4.600]"
    assert both[1] == f"At step 4 it has {own}, merge-64 {other}. {best}"
    assert alone[1] == unmeasured[1] == best


def test_a_training_tells_a_step_that_says_one_caption(told):
    steps = _steps({})
    steps[3]["collapsed"] = {"text": "a man", "images": 150, "of": 150}
    fallen = _steps({4: [_fall("trend", -0.4, 4)]})
    fallen[3]["collapsed"] = steps[3]["collapsed"]
    early = _steps({})
    early[1]["collapsed"] = steps[3]["collapsed"]
    long = _steps({})
    long[2]["collapsed"] = long[3]["collapsed"] = steps[3]["collapsed"]
    lists = (steps, fallen, early, long)
    given = [{"run": "r", "metric": "cider_d", "steps": each} for each in lists]
    found, both, first, lasting = told("trainingSentence", *given)
    assert lasting[0] == (
        "Step 4 says one caption for all 150 images; "
        "one caption for at least half of the images since step 3."
    )
    assert found[0] == "Step 4 says one caption for all 150 images."
    assert first[0].startswith("No step of r is worse than expected;")
    assert both == [found[0], f"Step 4 is 0.400 CIDEr-D below its trend. {found[1]}"]


def test_the_best_step_of_a_metric_where_lower_is_better(told):
    steps = [
        _run(step=step, scores={"perplexity": _score(value, "pregen", higher=False)})
        for step, value in enumerate([40.0, 12.5, 18.0], 1)
    ]
    steps.append(_run(step=4, status="running"))
    (found,) = told("trainingSentence", {"run": "r", "metric": "perplexity", "steps": steps})
    assert found == [
        (
            "No step of r is worse than expected; "
            "its best perplexity is 12.50 [12.40, 12.60] at step 2."
        ),
        "1 checkpoint is not scored yet.",
    ]


def _gate(verdict, difference):
    score = {
        "difference": difference,
        "difference_interval": [difference - 0.01, difference + 0.01],
    }
    return {
        "gate": "not_worse(cider_d, 0.01)",
        "verdict": verdict,
        "detail": "the reason",
        "scores": {"cider_d": score | {"p": 0.01}},
    }


def test_an_evaluation_tells_its_state_its_gate_its_fall_or_its_score(told):
    scores = {"cider_d": _score(0.393), "perplexity": _score(9, "pregen", higher=False)}
    running = {
        "name": "captions",
        "status": "running",
        "progress": {"done": 62, "total": 100},
        "seconds_left": 40,
    }
    health = {"cider_d": {"human": 2.36, "constant": 0.091}}
    given = [
        _run(status="failed", error={"code": "not_finite", "detail": "a weight is no number"}),
        _run(status="queued"),
        _run(
            status="running",
            tasks=[running],
            forecast={"cider_d": {"value": 0.55, "interval": [0.51, 0.58]}},
        ),
        _run(status="canceled"),
        _run(scores=scores, gates=[_gate("passed", 0.1), _gate("failed", -0.021)]),
        _run(scores=scores, gates=[_gate("undecided", -0.021)]),
        _run(scores=scores, gates=[_gate("passed", 0.1)]),
        _run(scores=scores, falls=[_fall("run", -1.03)]),
        _run(scores=scores, health=health),
        _run(tasks=[running]),
    ]
    value = "CIDEr-D 0.393 [0.293, 0.493]."
    assert told("evaluationSentence", *({"run": run} for run in given)) == [
        ["A weight is no number.", ""],
        ["It is queued.", ""],
        [
            "It is running: captions 62 %, 40 s left.",
            "CIDEr-D is forecast at 0.550 [0.510, 0.580].",
        ],
        ["It was stopped before its end.", ""],
        ["It fails its gate: the reason.", value],
        ["Its gate is undecided: the reason.", value],
        ["It passes its gate.", value],
        [
            "Step 5 is 1.030 CIDEr-D below merge-64 at the same step.",
            value,
        ],
        [
            value,
            "On this split people's captions have 2.360, one caption for all images has 0.091.",
        ],
        ["Its task is done.", ""],
    ]


def test_an_evaluation_that_repeats_a_caption_tells_it_before_its_score(told):
    whole, most = (
        {
            "scores": {"cider_d": _score(0.71)},
            "collapsed": {"text": text, "images": many, "of": 2150},
        }
        for text, many in (("a red circle", 2150), ("a \u202e circle", 1100))
    )
    given = [
        {"run": _run(**whole)},
        {"run": _run(**whole, falls=[_fall("run", -1.03)])},
        {"run": _run(**most)},
        {"run": _run(**whole, gates=[_gate("failed", -0.021)])},
    ]
    value = "CIDEr-D 0.710 [0.610, 0.810]."
    claim = "One caption for all 2,150 images: “a red circle”."
    alone, fallen, some, gated = told("evaluationSentence", *given)
    assert alone == [claim, value]
    assert fallen[0] == claim
    assert fallen[1].startswith(f"{value} Step 5 is 1.030 CIDEr-D below")
    isolated = "\u2068a \u202e circle\u2069"
    assert some == [f"One caption for 1,100 of 2,150 images: “{isolated}”.", value]
    assert gated[1] == f"{value} {claim}"


def _needing(*kinds):
    """Items of these kinds; `behind` and `trend` are kinds of a fall."""
    falls = {"behind": "run", "trend": "trend"}
    return [
        {"kind": "fall", "fall": _fall(falls[kind], -1.03)} if kind in falls else {"kind": kind}
        for kind in kinds
    ]


def _unfinished(*statuses):
    return {"items": [{"status": status} for status in statuses], "next": None}


def test_home_counts_what_needs_attention(told):
    none = _unfinished()
    some = _unfinished("running", "queued", "queued", "running", "queued")
    many = _unfinished(*["queued"] * 50) | {"next": "more"}
    kinds = ["behind", "collapsed", "failed", "gate", "gate", "trend", "behind", "behind", "new"]
    given = [
        {"attention": _needing(*kinds), "name": "cold", "unfinished": some},
        {"attention": [], "name": "", "unfinished": none},
        {"attention": _needing("new"), "name": "odd", "unfinished": many},
    ]
    assert told("homeSentence", *given) == [
        [
            "cold is 1.030 CIDEr-D below merge-64 at the same step.",
            (
                "8 more evaluations need attention: 2 are behind another training, "
                "1 is worse than expected from its training, 2 failed their gates, 1 failed, "
                "1 says one caption for most images and 1 for another reason. "
                "2 running, 3 queued."
            ),
        ],
        ["Nothing of the last 30 days needs attention.", "0 running, 0 queued."],
        ["odd needs attention.", "At least 50 running or queued."],
    ]


def test_home_begins_with_the_gravest_finding(told):
    measured = {"metric": "cider_d", "difference": -0.0384, "interval": [-0.061, -0.015]}
    unmeasured = {"metric": None, "difference": None, "interval": None}
    findings = {
        "x fails its gate: CIDEr-D is 0.038 [0.015, 0.061] below the baseline; "
        "the gate allows 0.010.": {
            "gate": {"gate": "not_worse(cider_d, 0.01)", "detail": "-"} | measured
        },
        "x fails its gate: CIDEr-D 0.168 is below 9.": {
            "gate": {"gate": "cider_d >= 9", "detail": "cider_d 0.1682 < 9"} | unmeasured
        },
        "x failed: 1 of 8 values is not finite; did it diverge?": {
            "error": {"code": "odd", "detail": "1 of 8 values is not finite; did it diverge?"}
        },
        "x has one caption for 26 of 40 images.": {
            "caption": {"text": "w", "images": 26, "of": 40}
        },
    }
    given = [
        {"attention": [{"kind": "new"} | item], "name": "x", "unfinished": _unfinished()}
        for item in findings.values()
    ]
    assert [claim for claim, _ in told("homeSentence", *given)] == [*findings]


def test_the_parts_of_what_needs_attention_add_up(told):
    drawn = random.Random(5)
    kinds = ["behind", "trend", "gate", "failed", "collapsed", "new"]
    given = [drawn.choices(kinds, k=drawn.randint(1, 40)) for _ in range(30)]
    answers = [
        {"attention": _needing("failed", *each), "name": "x", "unfinished": _unfinished()}
        for each in given
    ]
    for kinds, (_, detail) in zip(given, told("homeSentence", *answers), strict=True):
        whole, *parts = map(int, re.findall(r"\d+", detail.partition(". ")[0]))
        assert whole == sum(parts) == len(kinds), detail


def _trained(run, best, fall=None):
    return {
        "run": run,
        "metric": "cider_d",
        "higher_is_better": True,
        "best": best and {"step": best[0], "evaluation": "ev", "value": best[1]},
        "steps": [{"step": 1, "fall": None}, {"step": 2, "fall": fall}],
    }


def test_training_runs_name_the_best_checkpoint_and_what_steps_are_behind(told):
    runs = [
        _trained("a", (6, 4.37)),
        _trained("b", (4, 4.4), _fall("run", -1.03, 2)),
        _trained("c", None),
        _trained("d", (2, 4.1), _fall("trend", -0.2, 2)),
        _trained("e", (2, 4.2), _fall("trend", 0.2, 2, metric="wmd")),
    ]
    none = "No step is worse than expected in CIDEr-D."
    given = [runs, [runs[0]], [runs[2]], []]
    assert told("trainingsSentence", *given) == [
        [
            "b has the checkpoint with the best CIDEr-D: 4.400 at step 4.",
            (
                "b at step 2 is behind merge-64, d at step 2 is below its trend "
                "and e at step 2 is above its trend in WMD."
            ),
        ],
        ["a has the checkpoint with the best CIDEr-D: 4.370 at step 6.", none],
        ["1 training run, none with a score yet.", none],
        None,
    ]


def test_training_runs_tell_one_that_says_one_caption_and_falls_in_other_metrics(told):
    repeating, ahead = _trained("r", (2, 0.7)), _trained("b", (2, 4.4))
    for item, collapsed in ((repeating, (2, 3)), (ahead, (1,))):
        item["steps"] = [
            {"step": step, "fall": None, "status": "succeeded", "is_collapsed": step in collapsed}
            for step in (1, 2, 3)
        ]
    ahead["steps"][1]["fall"] = _fall("trend", -0.2, 2, metric="bleu_3")
    (found,) = told("trainingsSentence", [repeating, ahead])
    assert found == [
        "r has said one caption for most images since step 2.",
        (
            "b has the checkpoint with the best CIDEr-D: 4.400 at step 2. "
            "b at step 2 is below its trend in BLEU-3."
        ),
    ]


def test_captions_count_those_that_share_nothing_and_the_words(told):
    wording = {
        "of": 1000,
        "without_bigram": 112,
        "copied": 1,
        "invented": [
            {"word": word, "captions": many}
            for word, many in [("man", 86), ("shirt", 71), ("x", 4), ("y", 1)]
        ],
        "missed": [],
    }
    each = {
        "of": 3,
        "without_bigram": 0,
        "copied": 2,
        "invented": [],
        "missed": [{"word": "dog", "captions": 2}],
    }
    common = [{"text": "a man", "images": images, "of": 1000} for images in (500, 1000)]
    found, full, half, same, none = told(
        "captionsSentence",
        *({"wording": one, "collapsed": None} for one in (wording, each)),
        *({"wording": wording, "collapsed": one} for one in common),
        {"wording": None, "collapsed": None},
    )
    assert full == [
        "Each content word of 3 captions is in a reference of its image.",
        "Most often missed: dog (2). 2 are references word for word.",
    ]
    assert found == [
        "86 of 1,000 captions say “man”, which no reference of the image says.",
        (
            "Next: shirt (71), x (4), y (1). 1 is a reference word for word. "
            "112 share no two successive words with a reference."
        ),
    ]
    rest = " ".join(found).replace("Next: shirt (71), x (4), y (1). ", "")
    assert half == ["One caption for 500 of 1,000 images: “a man”.", rest]
    assert same == ["One caption for all 1,000 images: “a man”.", rest]
    assert none is None
    caption = {"invented": ["man", "blue"], "missed": ["sandcastle"], "nearest": "a sandcastle"}
    said = told(
        "imageSentence", {"caption": caption}, {"caption": caption | {"invented": [], "missed": []}}
    )
    assert said == [
        [
            "The caption says man and blue, which no reference says.",
            "It does not say sandcastle, which the nearest reference says.",
        ],
        ["Each content word of the caption is in a reference.", ""],
    ]


def test_a_dataset_counts_its_images_and_captions(told):
    dataset = {
        "splits": {"test": {"images": 1000, "references": 5000, "pictures": 3}},
        "pictures_shown": True,
    }
    uneven = {
        "splits": {"test": {"images": 3, "references": 10, "pictures": 0}},
        "pictures_shown": False,
    }
    one = {
        "splits": {"test": {"images": 1, "references": 1, "pictures": 1}},
        "pictures_shown": True,
    }
    hidden = {"splits": dataset["splits"], "pictures_shown": False}
    given = [{"dataset": each, "split": "test"} for each in (dataset, uneven, one, hidden)]
    assert told("datasetSentence", *given) == [
        ["1,000 images with 5 captions each.", "3 of 1,000 images have pictures."],
        ["3 images with 10 captions by people.", "They have no pictures."],
        ["1 image with 1 caption.", "It has a picture."],
        ["1,000 images with 5 captions each.", "3 pictures are not shown."],
    ]


def test_the_best_predictor_is_the_strongest_in_either_direction(told):
    drawn = random.Random(7)
    rows = [
        {
            "metric": f"m{at}",
            "spearman": drawn.uniform(-0.99, 0.7),
            "spearman_p": 0.0104,
            "models": 14,
        }
        for at in range(30)
    ] + [{"metric": "none", "spearman": None, "spearman_p": None, "models": 14}]
    best = max(rows[:-1], key=lambda row: abs(row["spearman"]))
    study = {"metrics": {"cider_d": {"correlations": rows}}, "pregen": {"of": 672, "remain": 504}}
    found = f"(Spearman {_signed(best['spearman'])} over 14 models)"
    claim = f"{best['metric']} predicts CIDEr-D best here {found}"
    studied = {"study": study, "none_because": None}
    few = {"study": None, "none_because": "there are 2 models of 5"}
    unstudied = {"study": None, "none_because": None}
    given = [{"correlations": each, "target": "cider_d"} for each in (studied, few, unstudied)]
    none = "Not known yet which pre-gen metric predicts CIDEr-D"
    assert told("pregenSentence", *given) == [
        [f"{claim}.", "Picked from 504 metrics, so partly chance."],
        [f"{none} here: there are 2 models of 5.", ""],
        [f"{none} here: no study of this split has been made.", ""],
    ]
    assert [detail for _, detail in told("trustSentence", *given)] == [
        f"{claim}, picked from 504 metrics, so partly chance.",
        f"{none}.",
        f"{none}.",
    ]


def _health(**shares):
    """Health of metrics by the share of people's score that one caption for all images has."""
    return {metric: {"constant_of_human": share} for metric, share in shares.items()}


UNKNOWN = "the probes have no score of one caption for all images"
NO_PROBES = "no probes have been run on this split"
RATINGS = "How well metrics agree with people's ratings is not measured here."
GIVES = "one caption for all images"


@pytest.mark.parametrize(
    ("health", "reason", "claim", "own"),
    [
        (None, None, f"Not known yet which metric to trust here: {NO_PROBES}.", None),
        (
            _health(cider_d=None),
            "all images have one caption",
            f"Not known yet which metric to trust here: {UNKNOWN} (all images have one caption).",
            None,
        ),
        (
            _health(bleu_4=0.574, cider_d=0.112, meteor=0.481),
            None,
            (
                f"CIDEr-D is hardest to fool here: {GIVES} gets 11 % of "
                "people's score; with the 2 other metrics 48 to 57 %."
            ),
            "With METEOR it gets 48 %.",
        ),
        (
            _health(spice=0.301, cider_d=0.299, meteor=0.4),
            None,
            (
                f"SPICE and CIDEr-D are hardest to fool here: {GIVES} gets "
                "30 % of people's score; with METEOR 40 %."
            ),
            "",
        ),
        (
            _health(meteor=0.3),
            None,
            f"METEOR gives {GIVES} 30 % of people's score; no other metric was probed.",
            "",
        ),
        (
            _health(cider_d=0.5, meteor=0.9, spice=0.6),
            None,
            f"Trust no metric alone here: even CIDEr-D gives {GIVES} 50 % of people's score.",
            "With METEOR it gets 90 %.",
        ),
    ],
)
def test_the_first_sentence_says_which_metric_to_trust(told, health, reason, claim, own):
    """That one which tells people's captions best from one caption for all images, if any does."""
    study = {"study": None, "none_because": "few"}
    given = {"health": health, "reason": reason, "correlations": study, "target": "meteor"}
    rest = "Not known yet which pre-gen metric predicts METEOR."
    details = [rest] if own is None else [own, RATINGS, rest]
    assert told("trustSentence", given) == [[claim, " ".join(filter(None, details))]]


def test_without_training_captions_the_remedy_is_told(told):
    given = {"health": _health(cider_d=None), "reason": "no training captions to choose from"}
    ((_, detail),) = told("trustSentence", given | {"correlations": None, "target": "meteor"})
    assert detail.startswith("Add a split named train to the dataset")


def test_pre_gen_metrics_are_told_in_words_and_equals_are_counted(told):
    names = ["mean_min_count_filter0", "sum_min_count_filter0", "max_join_prob_none"]
    rows = [
        {"metric": name, "spearman": value, "models": 9}
        for name, value in zip(names, [0.9, -0.9, 0.5], strict=True)
    ]
    study = {"metrics": {"cider_d": {"correlations": rows}}, "pregen": {"remain": 473}}
    one = {"metrics": {"cider_d": {"correlations": rows[2:]}}, "pregen": {"remain": 473}}
    given = [
        {"correlations": {"study": each, "none_because": None}, "target": "cider_d"}
        for each in (study, one)
    ]
    assert [claim for claim, _ in told("pregenSentence", *given)] == [
        (
            "The number of the model's first choices (lowest of an image's captions, "
            "mean over images) predicts CIDEr-D best here, as well as 1 other metric "
            "(Spearman +0.900 over 9 models)."
        ),
        (
            "The probability of all tokens (highest over all captions) predicts CIDEr-D best here "
            "(Spearman +0.500 over 9 models)."
        ),
    ]


def test_metrics_have_one_order_after_the_chosen_one(script):
    assert script("""
        const { byUsualOrder } = await load("parts/metrics");
        const given = ["zeta", "bleu_1", "alpha", "bleu_4", "meteor", "cider_d"];
        return [byUsualOrder(given), byUsualOrder(given, "bleu_1"), byUsualOrder(given, "zeta")];
    """) == [
        ["cider_d", "meteor", "bleu_4", "bleu_1", "zeta", "alpha"],
        ["bleu_1", "cider_d", "meteor", "bleu_4", "zeta", "alpha"],
        ["zeta", "cider_d", "meteor", "bleu_4", "bleu_1", "alpha"],
    ]


def test_a_popover_says_whether_to_trust_its_metric(script):
    cases = [
        ("meteor", None),
        ("spice", _health(cider_d=0.11)),
        ("cider_d", _health(cider_d=0.11, meteor=0.48)),
        ("meteor", _health(cider_d=0.11, meteor=0.48)),
        ("cider_d", _health(cider_d=0.6, meteor=0.7)),
        ("cider_d", _health(cider_d=0.11)),
    ]
    unknown = "Not known yet whether to trust it on this split:"
    most = "On this split it is the hardest to fool, and to be trusted most:"
    more = "On this split CIDEr-D is harder to fool, and to be trusted more:"
    gives = f"it gives {GIVES} {{}}\xa0% of people's score".format
    assert script(f"""
        const {{ trustOf }} = await load("parts/sentences");
        return {json.dumps(cases)}.map((each) => trustOf(...each));
    """) == [
        f"{unknown} {NO_PROBES}.",
        f"{unknown} {UNKNOWN}.",
        f"{most} {gives(11)}, the least of 2 metrics.",
        f"{more} {gives(48)}, CIDEr-D 11\xa0%.",
        f"On this split it is not to be trusted alone: {gives(60)}.",
        f"On this split {gives(11)}; no other metric was probed.",
    ]


def _card(pairs, found):
    """A card; `found`: accuracies and their intervals at half of the steps, by metric."""
    return {
        "none_because": None,
        "target": "cider_d",
        "pairs": pairs,
        "metrics": [
            {
                "metric": metric,
                "decisions": [
                    {"percent": 50, "accuracy": accuracy, "interval": ends, "pairs": pairs}
                ],
            }
            for metric, (accuracy, ends) in found.items()
        ],
    }


def test_a_metric_decides_early_only_if_the_lower_end_of_its_share_says_so(script):
    """And few pairs are told as too few, whatever their share is."""
    drawn = random.Random(5)
    cards, wanted = [], []
    for pairs in [0, 1, 2, 4, 5, 10, 19, 20, 28] * 3:
        accuracy = drawn.choice([0.8, 0.95, 1.0])
        ends = drawn.choice([None, [accuracy - 0.1, accuracy], [accuracy - 0.02, accuracy]])
        cards.append(_card(pairs, {"meteor": (accuracy, ends)}))
        sure = ends[0] if ends else accuracy if pairs >= 20 else 0
        if pairs < 5:
            wanted.append("tells which" if pairs == 0 else "too few to say which")
        elif sure >= 0.9:
            share = f"{accuracy:.0%}".replace("%", " %")
            wanted.append(f"METEOR has the final order in CIDEr-D of {share}")
        else:
            wanted.append(f"No metric surely has the final order in CIDEr-D of 90 % of {pairs}")
    found = script(f"""
        const {{ earlyFinding }} = await load("parts/sentences");
        return {json.dumps(cards)}.map(earlyFinding);
    """)
    for finding, part in zip(found, wanted, strict=True):
        assert part in finding
    assert len({part.split()[0] for part in wanted}) == 4


def test_a_share_of_few_pairs_is_a_count(script):
    assert script("""
        const { decidedShare } = await load("parts/sentences");
        const of = (accuracy, pairs, interval) => decidedShare({ accuracy, pairs, interval });
        return [of(1, 2), of(0.5, 4), of(1, 5), of(0.9, 10, [0.8, 1]), of(null, 2)];
    """) == ["2 of 2", "2 of 4", "100 %", "90 % (80–100)", "–"]


def test_few_forecasts_are_told_one_by_one_with_what_was_measured(script):
    drawn = random.Random(9)
    given, wanted = [], []
    for many in [0, 1, 2, 4]:
        pairs, parts = [], []
        for _ in range(many):
            value, measured = drawn.uniform(0, 3), drawn.uniform(0, 3)
            ends = drawn.choice([None, [value - 0.5, value + 0.5]])
            pairs.append({"forecast": {"value": value, "interval": ends}, "value": measured})
            told = f"[{_number(ends[0])}, {_number(ends[1])}]" if ends else "without an interval"
            missed = ends and not ends[0] <= measured <= ends[1]
            parts.append(
                f"{_number(value)} {told}, measured {_number(measured)}"
                + (", outside it" if missed else "")
            )
        given.append({"metric": "cider_d", "pairs": pairs})
        start = "One forecast" if many == 1 else f"{many} forecasts"
        wanted.append(f"{start} so far: CIDEr-D {'; '.join(parts)}: too few to judge.")
    wanted[0] = "No forecast of CIDEr-D can be compared with a measured value yet."
    assert "outside it" in "".join(wanted)
    found = script(f"""
        const {{ forecastsSentence }} = await load("parts/sentences");
        return {json.dumps(given)}.map(forecastsSentence);
    """)
    assert found == wanted


def test_jobs_tell_silent_workers(told):
    idle, silent = {"state": "idle"}, {"state": "not_answering"}
    given = [
        {"running": 1, "queued": 2, "workers": [idle, silent]},
        {"running": 0, "queued": 0, "workers": [idle]},
        {"running": 0, "queued": 3, "workers": []},
    ]
    assert [claim for claim, _ in told("jobsSentence", *given)] == [
        "1 of 2 workers is not answering: 1 job running, 2 queued.",
        "0 jobs running, 0 queued.",
        "No worker is running: 3 evaluations are queued.",
    ]
    busy = {"running": 1, "queued": 1, "workers": [idle, {"state": "busy"}]}
    (found,) = told("jobsSentence", busy)
    assert found == ["1 job running, 1 queued.", "1 of 2 workers is busy."]


NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?")


def _leaves(answer):
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield key
            yield from _leaves(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _leaves(value)
    else:
        yield answer


def test_no_number_is_made_up(told):
    """Each number of a sentence is one of the answer, in its form, or a count of its items."""
    drawn = random.Random(11)
    items = [_standing(f"run {at}", drawn.uniform(0, 1), 1 + at // 3) for at in range(9)]
    board = _board(items, detectable=drawn.uniform(0, 0.1), firsts={"meteor": "ev_run 4"})
    (found,) = told("leaderboardSentence", board)
    shown = {_number(leaf) for leaf in _leaves(board) if isinstance(leaf, float)}
    shown |= {
        str(leaf) for leaf in range(len(items) + 1)
    }  # counts; "4 of 5" and "BLEU-4" among them
    assert set(NUMBER.findall(" ".join(found))) <= shown


def test_the_rank_of_an_evaluation_is_told_where_the_board_has_it(told):
    where = "tiny/test"
    dataset = {"name": "tiny", "split": "test"}
    run = _run(id="ev_b", scores={"cider_d": _score(0.393)}, dataset=dataset)
    leader, own = _standing("a", 0.5, 1), _standing("b", 0.393, 2)
    equal = _standing("c", 0.393, 2, equal=1, equal_ones=["ev_b"])
    boards = [
        _board([leader, own]),
        _board([leader, own | {"rank": 1, "tied": True}]),
        _board([own | {"rank": 1}, leader]),
        _board([own | {"rank": 1, "tied": True}, leader]),
        _board([leader, equal]),
        _board([leader]),
        None,
    ]
    value = "CIDEr-D 0.393 [0.293, 0.493]."
    found = told("evaluationSentence", *({"run": run, "board": board} for board in boards))
    assert found == [
        [value, f"Rank 2 on {where}; a leads with 0.500."],
        [value, f"Rank 1 on {where}, shared with others; a leads with 0.500."],
        [value, f"It leads {where}."],
        [value, f"It leads {where}, but others cannot be told apart from it."],
        [
            value,
            (
                "Its CIDEr-D equals that of c, which stands for it on the leaderboard of "
                "tiny/test: rank 2."
            ),
        ],
        [value, ""],
        [value, ""],
    ]


GATES = {
    "cider_d >= 9": "CIDEr-D at least 9",
    "perplexity<20.5": "perplexity below 20.5",
    "meteor > baseline - 0.01": "METEOR above the baseline − 0.01",
    "cider_d <= 1.02 * baseline": "CIDEr-D at most 1.02 * the baseline",
    "not_worse(cider_d, 0.01)": "not worse than the baseline by more than 0.01 in CIDEr-D",
    "not_worse(bleu_4, meteor, cider_d, 2 %)": (
        "not worse than the baseline by more than 2 % in BLEU-4, METEOR and CIDEr-D"
    ),
    "better(cider_d)": "better than the baseline in CIDEr-D",
    "no_significant_drop(cider_d, meteor)": (
        "no significant drop in CIDEr-D and METEOR against the baseline"
    ),
    "a gate of another time": "a gate of another time",
}


def test_gates_are_told_in_words(script):
    found = script(f"""
        const {{ gateName }} = await load("parts/sentences");
        return {json.dumps(list(GATES))}.map(gateName);
    """)
    assert dict(zip(GATES, found, strict=True)) == GATES


def test_how_far_a_gates_score_is_from_the_baseline_is_told_with_what_it_allows(script):
    ends = [-0.0612, -0.0151]
    below = {"metric": "cider_d", "difference": -0.0384, "interval": ends}
    above = {"metric": "perplexity", "difference": 0.25, "interval": [-0.1, 0.6]}
    given = [
        ["not_worse(cider_d, 0.01)", below | {"margin": 0.01}, "base.json"],
        ["not_worse(meteor, cider_d, 2 %)", below],
        ["not_worse(cider_d, 0.0001)", below],
        ["better(perplexity)", above],
        ["no_significant_drop(cider_d)", below | {"interval": None}],
        ["cider_d >= baseline - 0.01", below],
        ["cider_d >= 9", below | {"difference": None}],
    ]
    found = script(f"""
        const {{ gateFinding }} = await load("parts/sentences");
        return {json.dumps(given)}.map((each) => gateFinding(...each));
    """)
    size = "CIDEr-D is 0.038 [0.015, 0.061] below"
    assert found == [
        f"{size} base.json; the gate allows 0.010.",
        f"{size} the baseline; the gate allows 2 %.",
        f"{size} the baseline; the gate allows 0.0001.",
        "perplexity is 0.25 [−0.10, 0.60] above the baseline; the gate asks for an improvement.",
        "CIDEr-D is 0.038 below the baseline; the gate allows no significant drop.",
        f"{size} the baseline; the gate asks for CIDEr-D at least the baseline − 0.01.",
        None,
    ]


def test_an_evaluation_is_named_by_another_label_before_its_id(script):
    given = {
        "dev, who: one": {"branch": "dev", "who": "one"},
        "dev, 0123456": {"branch": "dev", "commit": "0123456789", "who": "one"},
        "who: one": {"who": "one", "seed": "3"},
        "run, step 5": {"run": "run", "step": "5", "who": "one"},
        "unnamed 012345": {},
    }
    twins = [
        {"id": f"ev_{seed}", "labels": {"file": "a", "seed": seed}, "created_at": "2026-03-01"}
        for seed in "12"
    ]
    found, told = script(f"""
        const {{ nameOrId, distinctNames }} = await load("parts/names");
        return [
            {json.dumps(list(given.values()))}.map((each) => nameOrId(each, "ev_0123456")),
            [...distinctNames({json.dumps(twins)}).values()],
        ];
    """)
    assert found == [*given]
    assert told == ["a, seed: 1", "a, seed: 2"]


def _decide(text, value, baseline=None):
    """The service's own reason of a verdict, as an answer has it."""
    gate = gates.parse_gate(text)
    (name,) = gate.metrics
    past = BaselineScore("ev_1", baseline, "s") if baseline is not None else None
    measured = {name: ScoreBounds(value, value, "s", None)}
    evidence = GateEvidence(measured, {}, {name: past} if past else {}, {}, {})
    ((_, detail),) = gates.decide_gates([gate], evidence)
    return {"detail": detail, "scores": {name: {}}}


def test_the_reasons_of_gates_are_told_in_words(script):
    """Digits that show on which side of the bound the value is are kept."""
    texts = {
        "CIDEr-D 0.168 is below 9.": _decide("cider_d >= 9", 0.1682),
        "CIDEr-D 0.30004 is at least 0.3.": _decide("cider_d >= 0.3", 0.30004),
        "METEOR 0.250 is at most 0.3.": _decide("meteor > 0.3", 0.25),
        "CIDEr-D 0.400 is at least 0.29; the baseline is 0.3.": _decide(
            "cider_d >= baseline - 0.01", 0.4, 0.3
        ),
        "CIDEr-D was not computed alike.": {
            "detail": "cider_d was not computed alike",
            "scores": {"cider_d": {}},
        },
        "CIDEr-D between 0.100 and 0.200 is below 9.": {
            "detail": "cider_d between 0.1 and 0.2 < 9",
            "scores": {"cider_d": {}},
        },
    }
    found = script(f"""
        const {{ gateReason }} = await load("parts/sentences");
        return {json.dumps([*texts.values(), {"detail": None, "scores": {}}])}.map(gateReason);
    """)
    assert found == [*texts, None]


def _tasks(*states):
    return [{"status": status, "seconds_left": left} for status, left in states]


def test_time_left_is_told_only_where_every_task_tells_it(script):
    given = {
        "one": _tasks(("done", None), ("running", 40.0)),
        "the longest": _tasks(("running", 40.0), ("running", 90.0)),
        "one has not begun": _tasks(("running", 40.0), ("waiting", None)),
        "one counts nothing": _tasks(("running", 40.0), ("running", None)),
        "all are done": _tasks(("done", None), ("failed", None)),
        "none": [],
    }
    found = script(f"""
        const {{ secondsLeft }} = await load("parts/sentences");
        return {json.dumps(list(given.values()))}.map((tasks) => secondsLeft(tasks));
    """)
    assert dict(zip(given, found, strict=True)) == {
        "one": 40.0,
        "the longest": 90.0,
        "one has not begun": None,
        "one counts nothing": None,
        "all are done": None,
        "none": None,
    }


def test_an_age_is_rounded_up_from_three_quarters_of_a_unit(script):
    hour, day = 3600, 86_400
    given = {
        30: "just now",
        60: "1 minute ago",
        59 * 60: "59 minutes ago",
        hour + 44 * 60: "1 hour ago",
        hour + 45 * 60: "2 hours ago",
        day + 17 * hour: "yesterday",
        day + 18 * hour: "2 days ago",
    }
    found = script(f"""
        const {{ relative }} = await load("parts/dates");
        const then = Date.parse("2026-03-01T12:00:00Z");
        return {json.dumps(list(given))}.map((seconds) =>
            relative("2026-03-01T12:00:00Z", then + 1000 * seconds));
    """)
    assert dict(zip(given, found, strict=True)) == given
