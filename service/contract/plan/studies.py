"""Plans of correlation studies. Pure: no clock, files or database."""

from collections.abc import Mapping
from dataclasses import dataclass

from prescore.models.studies import StudyIdf
from service.contract.metrics import families
from service.contract.metrics.families import Family
from service.contract.metrics.views import View
from service.contract.plan.tasks import Blob, Task

Source = Blob | Task
STRATA = 5
SORTED_BY = "cider_d"  # images are sorted into strata by their captions' scores of this family
FAMILIES: Mapping[str, Family] = View(
    lambda: {name: row for name, row in families.FAMILIES.items() if row.is_studied},
    families.FAMILIES,
)
# Inputs in which a stratum's document frequencies are counted.
_WEIGHED_BY = ("captions", "references")


@dataclass(frozen=True)
class Studied:
    """A model in a study: its columns, its score files by family, its captions and references."""

    columns: Source
    scores: Mapping[str, Source]
    captions: Source
    references: Source


def strata(model: Studied, idf: StudyIdf) -> Task:
    """The task that computes a model's scores on strata of images."""
    inputs = {"columns": model.columns, **model.scores}
    if idf == "stratum":
        inputs |= {name: getattr(model, name) for name in _WEIGHED_BY}
    return Task("strata", inputs, {"idf": idf})


def study(models: Mapping[str, Task], dataset: str) -> Task:
    """The task that correlates the strata of all models, given by model."""
    return Task("study", models, {"dataset": dataset})
