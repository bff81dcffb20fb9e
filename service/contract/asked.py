"""What a request for metrics means on this machine: their works, and what these are computed with.
The same for a service and for who scores without one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from service.contract import assets, catalogue, planning
from service.contract.assets import Places
from service.contract.planning import Probing, Wanted
from service.contract.requests import BertScore
from service.contract.works import Blob


def wanted(
    families: Sequence[str],
    places: Places,
    *,
    tokenizer: str,
    idf: str,
    bertscore: BertScore,
    splits: Iterable[str],
    split: str,
) -> Wanted:
    own = _parameters(families, places)
    if "bertscore" in own:
        own["bertscore"] |= bertscore.model_dump()
    training = planning.training_split(splits, split)
    return Wanted(families, tokenizer, idf=idf, own=own, training=training)


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
) -> tuple[Probing, dict[str, str]]:
    """And which metrics cannot be computed here, with the reasons: they keep no other from being
    probed; where all are, their works say why.
    """
    names = catalogue.expand(metrics)
    reasons = assets.lacking(names, places)
    computable = [name for name in names if name not in reasons] or names
    asked = Probing(
        probes,
        computable,
        tokenizer,
        options,
        own=_parameters(catalogue.works_of(computable), places),
        training=planning.training_split(splits, split),
        captions=None if captions is None else Blob(captions),
    )
    return asked, reasons


def _parameters(families: Sequence[str], places: Places) -> dict[str, dict[str, Any]]:
    return {family: assets.parameters(family, places) for family in families}
