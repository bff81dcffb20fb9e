"""How many finished evaluations a forecast needs."""

from service.contract.wording import counted

FEWEST_EVALUATIONS = 8
FEWEST_RUNS = 2  # one run alone does not show how much runs differ
PREDICTORS = ("perplexity", "mean_join_normcount_filter0", "mean_max_normcount_prefix0")


def too_few(evaluations: int, runs: int, of: str = "checkpoints") -> str | None:
    """Why so many evaluations and runs are too few for a forecast; None where they are enough."""
    if evaluations < FEWEST_EVALUATIONS:
        return (
            f"{counted(evaluations, 'finished evaluation')} of other {of} on this split, "
            f"computed in the same way; at least {FEWEST_EVALUATIONS} are needed"
        )
    if runs < FEWEST_RUNS:
        return (
            f"all {evaluations} finished evaluations on this split are of one training run, which "
            "does not show how much runs differ; the label `run` tells runs apart"
        )
    return None
