"""Looks: what they are planned to look at."""

import pytest

from helpers.estimated_plans import checkpoint_plan, with_estimate
from service.contract.plan import estimates
from service.contract.plan.postgen import PostgenRequest


def _plan(families=("bleu", "cider_d", "wmd"), idf="dataset", **how):
    wanted = PostgenRequest(families, "ptb", idf=idf)
    return with_estimate(checkpoint_plan(wanted, **how)).named


def test_looks_are_few_however_many_parts_there_are():
    plan = _plan(images=400, decoding={"beam": 20, "max_words": 1000})
    looks, parts = plan["estimate"].parts, plan["captions"].parts
    assert len(parts) == 400
    assert len(looks) == estimates.MOST_LOOKS
    assert looks[-1].parameters["images"] == [390, 400]


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
