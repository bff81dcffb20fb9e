"""Scores captions on this machine, with the checks, works and signatures of a service."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.contract.api.requests import BertScore
from service.contract.api.runs import WarningOut
from service.contract.api.scores import ScoreOut
from service.contract.errors import PrescoreError, RequestRefused
from service.contract.formats import outputs
from service.contract.metrics import catalogue
from service.contract.plan import asked as meaning
from service.contract.plan import assets, planning
from service.contract.plan.postgen import Wanted
from service.contract.results import Scored as Summed
from workers.jobs.toolbox import Toolbox
from workers.offline import local
from workers.offline.fitting import fitted
from workers.offline.local import Outcome, Told
from workers.offline.sources import Source

_OURS = "captions"  # the name of the captions among the inputs; they are never kept


@dataclass(frozen=True)
class Asked:
    metrics: Sequence[str]
    tokenizer: str = "ptb"
    subset: bool = False
    idf: str = "dataset"
    bertscore: BertScore = field(default_factory=BertScore)


@dataclass(frozen=True)
class Scored:
    """`missing`: metric -> why it has no score. `captions`: (image, caption, its own scores)."""

    scores: Mapping[str, ScoreOut]
    missing: Mapping[str, PrescoreError]
    warnings: Sequence[WarningOut]
    captions: Sequence[tuple[str, str, Mapping[str, float]]]


def score(
    given: Sequence[tuple[str, str]],
    source: Source,
    asked: Asked,
    toolbox: Toolbox,
    told: Told,
    cache: Path | None = None,
) -> Scored:
    """Score `given`: (image, caption) pairs. RequestRefused where they do not fit the dataset.

    Results that are kept for the next time go to `cache` (by default in PRESCORE_HOME).
    """
    registered = assets.models(toolbox.places)
    shown, models = meaning.with_models(asked.metrics, registered)
    names = catalogue.expand(shown)
    found = fitted(given, source, subset=asked.subset, tokenizer=asked.tokenizer)
    with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
        captions = Path(folder) / _OURS
        captions.write_text(json.dumps(found.pairs), "utf-8")
        plan = planning.plan_captions(
            _OURS,
            source.digest,
            source.split,
            len(source.items),
            _wanted(names, source, asked, toolbox, models),
        )
        paths = {digest: path for (_, digest), path in registered.items()}
        blobs = {_OURS: captions, source.digest: source.path, **paths}
        keep = (cache or toolbox.places.home / "cache") / "works"
        outcomes = local.run(plan, blobs, toolbox, keep, told, Path(folder))
        return _scored(names, outcomes, source, found)


def _wanted(
    names: Sequence[str],
    source: Source,
    asked: Asked,
    toolbox: Toolbox,
    models: Mapping[str, str],
) -> Wanted:
    for name in names:
        if catalogue.metric(name).family != "postgen":
            raise RequestRefused(f"{name} is a pre-gen metric: it needs a checkpoint")
    return meaning.wanted(
        catalogue.works_of(names),
        toolbox.places,
        tokenizer=asked.tokenizer,
        idf=asked.idf,
        bertscore=asked.bertscore.model_dump(),
        splits=source.splits,
        split=source.split,
        models=models,
    )


def _scored(
    names: Sequence[str],
    outcomes: Mapping[str, Outcome],
    source: Source,
    found: outputs.Arranged,
) -> Scored:
    from workers.metrics import postgen

    scores: dict[str, ScoreOut] = {}
    missing: dict[str, PrescoreError] = {}
    columns: dict[str, list[float]] = {}
    warnings = [WarningOut(**warning) for warning in found.warnings]
    for name in names:
        outcome = outcomes[catalogue.work_of(name)]
        if outcome.error is not None or outcome.path is None:
            missing[name] = outcome.error or PrescoreError("it was not computed")
        elif isinstance(outcome.summary, Summed) and name in outcome.summary.scores:
            summary = outcome.summary
            value, interval = summary.scores[name], summary.intervals.get(name)
            scores[name] = ScoreOut.of(name, value, summary.signature, interval)
            own = postgen.read(outcome.path).captions
            if name in own:
                columns[name] = own[name].tolist()
            if name in summary.flat:
                warnings.append(WarningOut(**outputs.flat(name, summary.flat[name])))
    rows = [
        (source.items[place].image, caption, {name: own[at] for name, own in columns.items()})
        for at, (place, caption) in enumerate(found.pairs)
    ]
    return Scored(scores, missing, warnings, rows)
