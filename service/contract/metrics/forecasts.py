"""How much a team must have evaluated before anything is forecast from it."""

FEWEST_EVALUATIONS = 8
FEWEST_RUNS = 2  # one alone does not say how far runs differ
PREDICTORS = ("perplexity", "mean_join_normcount_filter0", "mean_max_normcount_prefix0")


def too_thin(evaluations: int, runs: int) -> str | None:
    """Why there is no forecast from so many."""
    if evaluations < FEWEST_EVALUATIONS:
        return (
            f"{evaluations} finished evaluations of other checkpoints on this split, computed in "
            f"the same way; at least {FEWEST_EVALUATIONS} are needed"
        )
    if runs < FEWEST_RUNS:
        return (
            f"all {evaluations} finished evaluations on this split are of one training run, which "
            "does not say how far runs differ; the label `run` tells runs apart"
        )
    return None
