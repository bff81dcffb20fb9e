"""The works of a correlation study. Pure: no clock, no files, no database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from service.contract.metrics import families
from service.contract.metrics.families import Family
from service.contract.metrics.views import View
from service.contract.plan.works import Blob, Work

Idf = Literal["dataset", "stratum"]
Source = Blob | Work
STRATA = 5
SORTED_BY = "cider_d"  # the family whose scores of single captions tell strata apart
FAMILIES: Mapping[str, Family] = View(
    lambda: {name: row for name, row in families.FAMILIES.items() if row.is_studied},
    families.FAMILIES,
)
_WEIGHED_BY = ("captions", "references")  # what document frequencies of strata are counted in


@dataclass(frozen=True)
class Studied:
    """A checkpoint's columns, the score files of its captions by family, and what these are of."""

    columns: Source
    scores: Mapping[str, Source]
    captions: Source
    references: Source


def strata(model: Studied, idf: Idf) -> Work:
    """Its scores on strata of images."""
    inputs = {"columns": model.columns, **model.scores}
    if idf == "stratum":
        inputs |= {name: getattr(model, name) for name in _WEIGHED_BY}
    return Work("strata", inputs, {"idf": idf})


def study(models: Mapping[str, Work], dataset: str) -> Work:
    """Of strata by the names of their models."""
    return Work("study", models, {"dataset": dataset})
