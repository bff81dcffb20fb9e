"""The metrics of a request with the assets of this machine, as input of `planning`.

Used by the service and by the commands that score without one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue, families
from service.contract.metrics.families import FAMILIES, kind_of
from service.contract.plan import assets, planning
from service.contract.plan.assets import Places
from service.contract.plan.planning import Probing
from service.contract.plan.postgen import Wanted
from service.contract.plan.tasks import Blob

Named = tuple[str, str]  # a model of a learned metric: its family, and its digest (`sha256:…`)


def with_models(
    names: Iterable[str], known: Collection[Named], field: str = ""
) -> tuple[list[str], dict[str, str]]:
    """The metrics by their shown names, and their models' digests by these names.

    `known`: all models that there are. UnknownMetric where none or several of a family begin with
    the digits in a name; its pointer is into `field` of the request.
    """
    models: dict[str, str] = {}
    shown = []
    for place, name in enumerate(names):
        digits = catalogue.model_of(name)
        if digits is not None:
            digest = _model(digits, known, name, f"{field}/{place}")
            name = catalogue.learned(kind_of(name), digest)  # noqa: PLW2901  the same metric's
            models[name] = digest
        shown.append(name)
    return shown, models


def _model(digits: str, known: Collection[Named], name: str, pointer: str) -> str:
    every = sorted(known)
    ours = [digest for family, digest in every if family == kind_of(name)]
    found = [digest for digest in ours if digest.startswith(f"sha256:{digits}")]
    if len(found) == 1:
        return found[0]
    if found:
        detail = f"{name:.100} may be any of {', '.join(found)}: give more digits"
    else:
        there = ", ".join(catalogue.learned(*each) for each in every) or "none"
        detail = f"there is no model of {name:.100} here; of learned metrics there are: {there}"
    raise UnknownMetric(detail, pointer=pointer)


def wanted(
    tasks: Sequence[str],
    places: Places,
    *,
    tokenizer: str,
    idf: str,
    bertscore: Mapping[str, Any],
    splits: Iterable[str],
    split: str,
    models: Mapping[str, str] | None = None,
) -> Wanted:
    """The tasks to plan with this machine's assets; `bertscore`: parameters of families that match
    words by any encoder. What was learned by one has its own way.
    """
    own = _parameters(tasks, places)
    for task in own:
        if "embedded" in families.needs(task) and FAMILIES[kind_of(task)].encoder is None:
            own[task] |= bertscore
    training = planning.training_split(splits, split)
    return Wanted(tasks, tokenizer, idf=idf, own=own, training=training, models=models or {})


def probing(
    probes: Sequence[str],
    metrics: Iterable[str],
    places: Places,
    *,
    tokenizer: str,
    options: Mapping[str, Mapping[str, Any]],
    splits: Iterable[str],
    split: str,
    captions: str | None,
    models: Mapping[str, str] | None = None,
) -> tuple[Probing, dict[str, str]]:
    """The probes to plan, and the metrics that cannot be computed here, with reasons. `models`:
    digests of the models that these names tell.

    These metrics are left out, unless no metric can be computed: then their tasks fail with the
    reasons.
    """
    names = catalogue.expand(metrics)
    reasons = assets.lacking(names, places)
    computable = [name for name in names if name not in reasons] or names
    asked = Probing(
        probes,
        computable,
        tokenizer,
        options,
        own=_parameters(catalogue.tasks_of(computable), places),
        training=planning.training_split(splits, split),
        captions=None if captions is None else Blob(captions),
        models=models or {},
    )
    return asked, reasons


def _parameters(tasks: Sequence[str], places: Places) -> dict[str, dict[str, Any]]:
    """The assets' digests of these tasks and of the families that they join."""
    each = dict.fromkeys([*tasks, *(part for task in tasks for part in families.parts_of(task))])
    return {task: assets.parameters(task, places) for task in each}
