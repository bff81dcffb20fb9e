"""The plan of an evaluation, of its request and of what is known when it is submitted."""

import pytest

from helpers.stored_records import PINNED
from service.contract.api.evaluations import EvaluationRequest
from service.contract.plan.estimates import ESTIMATE
from service.contract.plan.planning import CheckpointPlanner
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.prices import USUAL
from service.contract.plan.tasks import Blob
from service.runs.submission.evaluation_plan import ComparedPair, KnownFacts, plan_evaluation

CHECKPOINT = f"sha256:{'1' * 64}"
WANTED = PostgenRequest(["cider_d"], "none")
MODEL = CheckpointPlanner(
    *(CHECKPOINT, PINNED.digest, PINNED.split, PINNED.images),
    pregen=True,
    wanted=WANTED,
    decoding={"beam": 3, "min_words": 4, "max_words": 50, "unk": False},
)


def _plan(gates=("cider_d >= baseline",), **known):
    request = EvaluationRequest(
        checkpoint=CHECKPOINT, dataset="d/test", gates=list(gates), baseline="best"
    )
    return plan_evaluation(request, KnownFacts(PINNED, USUAL, WANTED, MODEL, **known)).named


def test_an_estimate_reads_the_stored_scores_of_the_baseline():
    estimate = _plan(past_scores={"cider_d": "sha256:past"})[ESTIMATE]
    assert estimate.inputs["baseline.cider_d"] == Blob("sha256:past")
    assert "baseline.cider_d" not in _plan()[ESTIMATE].inputs


def test_differences_of_margins_are_estimated_from_the_baseline_that_is_known():
    gates = "not_worse(cider_d, 0.01)", "better(cider_d)", "cider_d >= baseline"
    pair = ComparedPair("cider_d", "sha256:past", ("cider_d",))
    given = {"gates": gates, "comparisons": {"comparison_cider_d": pair}}
    look = _plan(**given, past_scores={"cider_d": "sha256:past"})[ESTIMATE]
    assert look.parameters == {"families": ["cider_d"], "margins": ["cider_d"], "tests": 2}
    assert look.parts[0].parameters["tests"] == 2
    another = _plan(**given, past_scores={"cider_d": "sha256:another"})[ESTIMATE]
    assert another.parameters == _plan()[ESTIMATE].parameters == {"families": ["cider_d"]}


@pytest.mark.parametrize("known", [{"gates": ()}, {"is_decoded": True}])
def test_without_gates_or_with_decoded_captions_nothing_is_estimated(known):
    assert ESTIMATE not in _plan(**known)


def test_a_comparison_reads_the_task_and_the_baselines_file():
    pair = ComparedPair("cider_d", "sha256:past", ("cider_d",))
    plan = _plan(comparisons={"comparison_cider_d": pair})
    inputs = plan["comparison_cider_d"].inputs
    assert inputs == {"a": plan["cider_d"], "b": Blob("sha256:past")}
