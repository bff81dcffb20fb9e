"""Looks: what they are planned to look at."""

import pytest

from helpers.estimated_plans import with_estimate
from service.contract.plan import estimates
from service.contract.plan.planning import CheckpointPlanner
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.tasks import Blob

DECODING = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}


def _plan(images=1000, past=None, decoding=DECODING, *, pregen=True, **how):
    how = {"families": ["bleu", "cider_d", "wmd"], "tokenizer": "ptb"} | how
    split = ("sha256:c", "sha256:d", "test", images)
    wanted = PostgenRequest(**how)
    planner = CheckpointPlanner(*split, pregen=pregen, wanted=wanted, decoding=decoding)
    return with_estimate(planner.plan(), past).named


def _inputs(look):
    return {name: at for name, at in look.inputs.items() if name.startswith("captions")}


def test_each_part_of_the_captions_is_looked_at_once_and_after_those_before():
    plan = _plan()
    looks, parts = plan["estimate"].parts, plan["captions"].parts
    assert [_inputs(look) for look in looks] == [{"captions0": part} for part in parts]
    assert "before" not in looks[0].inputs
    assert [look.inputs["before"] for look in looks[1:]] == list(looks[:-1])
    spans = [part.parameters["images"] for part in parts]
    assert [look.parameters["images"] for look in looks] == spans


def test_looks_are_few_however_many_parts_there_are():
    plan = _plan(images=400, decoding={"beam": 20, "max_words": 1000})
    looks, parts = plan["estimate"].parts, plan["captions"].parts
    assert len(parts) == 400
    assert len(looks) == estimates.MOST_LOOKS
    assert [part for look in looks for part in _inputs(look).values()] == list(parts)
    assert looks[-1].parameters["images"] == [390, 400]


def test_what_is_always_there_is_estimated_if_it_is_asked_for():
    assert _plan()["estimate"].parameters["families"] == ["cider_d", "bleu"]


@pytest.mark.parametrize(
    "given",
    [
        {"images": 256},
        {"pregen": False},
        {"families": ["wmd"]},
        {"families": ["cider_d"], "idf": "subset"},  # of a part, it would be on another scale
    ],
)
def test_there_are_no_looks_where_a_part_tells_nothing_of_the_whole(given):
    assert "estimate" not in _plan(**given)


def test_a_baseline_is_looked_at_where_it_has_scores_of_the_same_families():
    plan = _plan(past={"cider_d": "sha256:e", "meteor": "sha256:f"})
    for look in (plan["estimate"], *plan["estimate"].parts):
        found = {name: at for name, at in look.inputs.items() if name.startswith("baseline")}
        assert found == {"baseline.cider_d": Blob("sha256:e")}
    assert plan["captions"].key == _plan()["captions"].key
    assert plan["estimate"].key != _plan()["estimate"].key
