"""Plans with the task that estimates their final scores."""

from service.contract.plan import estimates
from service.contract.plan.planning import Plan


def with_estimate(plan, past=None):
    """The plan with its estimate, if it has one. `past`: the baseline's files by family."""
    estimate = estimates.plan_estimate(plan.named, past or {})
    return Plan({**plan.named, **({estimates.ESTIMATE: estimate} if estimate else {})})
