"""Histories made from a known relation of hits and CIDEr-D."""

import numpy as np

from service.contract.results import PastEvaluation

HITS = "mean_join_normcount_filter0"
PREFIX = "mean_max_normcount_prefix0"


def evaluation(run, hits, scores, architecture="merge", perplexity=None, prefix=0.1):
    shown = {"perplexity": 9.0 if perplexity is None else perplexity, HITS: hits, PREFIX: prefix}
    return PastEvaluation(run=str(run), architecture=architecture, scores=shown | scores)


def training(rng, runs, each, run_sd, noise=0.004, slope=1.0):
    """CIDEr-D is `slope` times the hit rate, plus a random effect of each run, plus noise."""
    found = []
    for run in range(runs):
        effect = rng.normal(scale=run_sd)
        for hits in np.sort(rng.uniform(0.2, 0.5, each)):
            value = slope * hits + effect + rng.normal(scale=noise)
            found.append(evaluation(run, float(hits), {"cider_d": float(value)}))
    return found


def pregen(one):
    """The pre-gen scores by the names that the task `pregen` uses."""
    scores = one.scores
    return {
        "geomean_join_pplx_none": scores["perplexity"],
        HITS: scores[HITS],
        PREFIX: scores[PREFIX],
    }
