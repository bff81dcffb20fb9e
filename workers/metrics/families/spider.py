"""SPIDEr: half of SPICE and half of CIDEr-D, caption by caption."""

import re
from collections.abc import Mapping

import numpy as np

from workers.metrics.families import cider, spice
from workers.metrics.family import FamilyMeasures, FamilyScores, ScoringInput, Statistics


def measure(task: ScoringInput) -> FamilyMeasures:
    return join_statistics(spice.measure(task).statistics, cider.measure_d(task).statistics)


def join_statistics(of_spice: Statistics, of_cider_d: Statistics) -> FamilyMeasures:
    """SPIDEr from the statistics of both, for the same captions in the same order."""
    statistics = {"spice": of_spice["f"], "cider_d": of_cider_d["cider_d"]}
    return FamilyMeasures({"spider": (statistics["spice"] + statistics["cider_d"]) / 2}, statistics)


def corpus(statistics: Statistics) -> dict[str, float]:
    halves = (float(np.mean(statistics[name])) for name in ("spice", "cider_d"))
    return {"spider": sum(halves) / 2}


def recipe(task: ScoringInput) -> str:
    return f"{cider.recipe(task)}|{spice.RECIPE}"


def join(parts: Mapping[str, FamilyScores]) -> tuple[FamilyMeasures, str]:
    """SPIDEr from scores of its halves for the same captions; also returns the recipe."""
    of_spice, of_cider_d = parts["spice"], parts["cider_d"]
    (weights,) = re.findall(r"\|(df:[^|]*)", of_cider_d.signatures["cider_d"])
    return join_statistics(of_spice.statistics, of_cider_d.statistics), f"{weights}|{spice.RECIPE}"
