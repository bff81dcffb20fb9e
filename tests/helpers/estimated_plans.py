"""Plans of checkpoints, and plans with the task that estimates their final scores."""

from service.contract.plan import estimates
from service.contract.plan.planning import CheckpointPlanner, Plan

DECODING = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}


def checkpoint_plan(wanted, images=1000, **how):
    """With pre-gen scores and the usual search, unless it is told otherwise."""
    split = ("sha256:c", "sha256:d", "test", images)
    asked = {"pregen": True, "decoding": DECODING} | how
    return CheckpointPlanner(*split, wanted=wanted, **asked).plan()


def with_estimate(plan, past=None):
    """The plan with its estimate, if it has one. `past`: the baseline's files by family."""
    estimate = estimates.plan_estimate(plan.named, past or {})
    return Plan({**plan.named, **({estimates.ESTIMATE: estimate} if estimate else {})})
