"""Probes a dataset on this machine, with the works and tables of a service."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from service.contract.api.probes import ProbeRow
from service.contract.api.scores import MetricHealth
from service.contract.errors import RequestRefused
from service.contract.plan import asked as meaning
from service.contract.plan import assets, planning
from service.contract.results import Health, ProbeTable
from workers.jobs.toolbox import Toolbox
from workers.offline import local
from workers.offline.fitting import fitted
from workers.offline.local import Told
from workers.offline.sources import Source

_Content = TypeVar("_Content", bound=BaseModel)
_CAPTIONS = "captions"  # the captions' name among the inputs


@dataclass(frozen=True)
class Asked:
    probes: Sequence[str]
    metrics: Sequence[str]
    tokenizer: str = "ptb"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Probed:
    """Rows by probe; by metric its health, and why it is missing."""

    rows: Mapping[str, Sequence[ProbeRow]]
    health: Mapping[str, MetricHealth]
    missing: Mapping[str, str]


def probe(
    source: Source,
    asked: Asked,
    given: Sequence[tuple[str, str]] | None,
    toolbox: Toolbox,
    told: Told,
) -> Probed:
    """Run probes. `given`: a system's (image, caption) pairs, if any. Raises PrescoreError where
    something is wrong or unavailable.
    """
    with tempfile.TemporaryDirectory(prefix="prescore-") as name:
        folder = Path(name)
        registered = assets.models(toolbox.places)
        metrics, models = meaning.with_models(asked.metrics, registered)
        paths = {digest: path for (_, digest), path in registered.items()}
        blobs = {source.digest: source.path, **paths}
        if given is not None:
            blobs[_CAPTIONS] = _write(folder / _CAPTIONS, given, source)
        wanted, reasons = meaning.probing(
            asked.probes,
            metrics,
            toolbox.places,
            tokenizer=asked.tokenizer,
            options=asked.options,
            splits=source.splits,
            split=source.split,
            captions=None if given is None else _CAPTIONS,
            models=models,
        )
        plan = planning.plan_probes(source.digest, source.split, wanted)
        keep = toolbox.places.home / "cache" / "works"
        found = local.run(plan, blobs, toolbox, keep, told, folder)
        tables = {probe: _content(found[probe], ProbeTable).rows for probe in asked.probes}
        health = _content(found[planning.HEALTH], Health).health
    return Probed(tables, health, reasons)


def _write(path: Path, given: Sequence[tuple[str, str]], source: Source) -> Path:
    path.write_text(json.dumps(fitted(given, source, subset=None).pairs), "utf-8")
    return path


def _content(outcome: local.Outcome, model: type[_Content]) -> _Content:
    if outcome.error is not None or outcome.path is None:
        raise outcome.error or RequestRefused("it was not computed")
    return model.model_validate_json(outcome.path.read_bytes())
