"""The metrics of a request with the assets of this machine, as input of `planning`.

Used by the service and by the commands that score without one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue, families
from service.contract.metrics.families import FAMILIES, find_family_name
from service.contract.plan import planning
from service.contract.plan.planning import ProbeInputs
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.tasks import Blob

ModelName = tuple[str, str]  # a model of a learned metric: its family, and its digest (`sha256:…`)


def resolve_models(
    names: Iterable[str], known: Collection[ModelName], field: str = ""
) -> tuple[list[str], dict[str, str]]:
    """The metrics by their shown names, and their models' digests by these names.

    `known`: all models that there are. UnknownMetric where none or several of a family begin with
    the digits in a name; its pointer is into `field` of the request.
    """
    models: dict[str, str] = {}
    shown = []
    for place, name in enumerate(names):
        digits = catalogue.read_model_digits(name)
        if digits is not None:
            digest = _model(digits, known, name, f"{field}/{place}")
            name = catalogue.name_learned_metric(find_family_name(name), digest)  # noqa: PLW2901  the same metric's
            models[name] = digest
        shown.append(name)
    return shown, models


def _model(digits: str, known: Collection[ModelName], name: str, pointer: str) -> str:
    every = sorted(known)
    ours = [digest for family, digest in every if family == find_family_name(name)]
    found = [digest for digest in ours if digest.startswith(f"sha256:{digits}")]
    if len(found) == 1:
        return found[0]
    if found:
        detail = f"{name:.100} may be any of {', '.join(found)}: give more digits"
    else:
        there = ", ".join(catalogue.name_learned_metric(*each) for each in every) or "none"
        detail = f"there is no model of {name:.100} here; of learned metrics there are: {there}"
    raise UnknownMetric(detail, pointer=pointer)


def gather_postgen(
    tasks: Sequence[str],
    places: AssetFolders,
    *,
    tokenizer: str,
    idf: str,
    bertscore: Mapping[str, Any],
    splits: Iterable[str],
    split: str,
    models: Mapping[str, str] | None = None,
) -> PostgenRequest:
    """The tasks to plan with this machine's assets; `bertscore`: parameters of families that match
    words by any encoder. What was learned by one has its own way.
    """
    own = _parameters(tasks, places)
    for task in own:
        if (
            "embedded" in families.list_needs(task)
            and FAMILIES[find_family_name(task)].encoder is None
        ):
            own[task] |= bertscore
    training = planning.find_training_split(splits, split)
    return PostgenRequest(
        tasks, tokenizer, idf=idf, own=own, training=training, models=models or {}
    )


def gather_probes(
    probes: Sequence[str],
    metrics: Iterable[str],
    places: AssetFolders,
    *,
    tokenizer: str,
    options: Mapping[str, Mapping[str, Any]],
    splits: Iterable[str],
    split: str,
    captions: str | None,
    models: Mapping[str, str] | None = None,
) -> tuple[ProbeInputs, dict[str, str]]:
    """The probes to plan, and the metrics that cannot be computed here, with reasons. `models`:
    digests of the models that these names tell.

    These metrics are left out, unless no metric can be computed: then their tasks fail with the
    reasons.
    """
    names = catalogue.expand_groups(metrics)
    reasons = assets.list_missing_metrics(names, places)
    computable = [name for name in names if name not in reasons] or names
    asked = ProbeInputs(
        probes,
        computable,
        tokenizer,
        options,
        own=_parameters(catalogue.list_metric_tasks(computable), places),
        training=planning.find_training_split(splits, split),
        captions=None if captions is None else Blob(captions),
        models=models or {},
    )
    return asked, reasons


def _parameters(tasks: Sequence[str], places: AssetFolders) -> dict[str, dict[str, Any]]:
    """The assets' digests of these tasks and of the families that they join."""
    each = dict.fromkeys(
        [*tasks, *(part for task in tasks for part in families.list_joined_families(task))]
    )
    return {task: assets.list_asset_parameters(task, places) for task in each}
