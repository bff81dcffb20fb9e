"""Computes the rows of local checkpoints for a study, with the works of a service."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from service.contract.api.requests import BertScore, Decoding
from service.contract.errors import RequestRefused
from service.contract.formats.digests import digest_of
from service.contract.metrics import catalogue
from service.contract.plan import asked as meaning
from service.contract.plan import assets, planning, studies
from service.contract.plan.planning import Plan
from service.contract.plan.postgen import Wanted
from service.contract.plan.studies import Idf, Studied
from service.contract.plan.works import Work
from workers.jobs.toolbox import Toolbox
from workers.offline import local
from workers.offline.local import Told
from workers.offline.sources import Source

if TYPE_CHECKING:
    from workers.analysis.study.rows import Rows


@dataclass(frozen=True)
class Asked:
    metrics: Sequence[str]
    idf: Idf = "dataset"
    tokenizer: str = "ptb"
    decoding: Decoding = field(default_factory=Decoding)
    precision: str = "fp32"


@dataclass(frozen=True)
class Gathered:
    """`missing`: checkpoint or metric -> why it has no rows or scores."""

    rows: "Sequence[Rows]"
    missing: Mapping[str, str]


def gather(
    checkpoints: Sequence[Path], source: Source, asked: Asked, toolbox: Toolbox, told: Told
) -> Gathered:
    """Compute 15 rows of each checkpoint."""
    from workers.analysis.study import tensors

    for path in checkpoints:
        if not path.is_file():
            raise RequestRefused(f"expected a checkpoint, found no file at {path}")
    digests = {path: digest_of(path) for path in checkpoints}
    blobs = {source.digest: source.path} | {digest: path for path, digest in digests.items()}
    wanted, missing = _wanted(source, asked, toolbox)
    plan = Plan(
        {str(path): _strata(digest, source, asked, wanted) for path, digest in digests.items()}
    )
    keep = toolbox.places.home / "cache" / "works"
    with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
        outcomes = local.run(plan, blobs, toolbox, keep, told, Path(folder))
        found = {
            name: tensors.read(outcome.path) for name, outcome in outcomes.items() if outcome.path
        }
    rows = [
        replace(own, datasets=[str(source)] * len(own), models=[name] * len(own))
        for name, own in found.items()
    ]
    failed = {name: outcome.error.detail for name, outcome in outcomes.items() if outcome.error}
    return Gathered(rows, missing | failed)


def _wanted(source: Source, asked: Asked, toolbox: Toolbox) -> tuple[Wanted, dict[str, str]]:
    """The metrics to compute, always with CIDEr-D for the strata; and why others are missing."""
    names = catalogue.expand([*asked.metrics, studies.SORTED_BY])
    for name in names:
        if catalogue.work_of(name) not in studies.FAMILIES:
            raise RequestRefused(f"expected a metric of captions and references, found {name}")
    missing = assets.lacking(names, toolbox.places)
    wanted = meaning.wanted(
        catalogue.works_of(name for name in names if name not in missing),
        toolbox.places,
        tokenizer=asked.tokenizer,
        idf="dataset",
        bertscore=BertScore().model_dump(),
        splits=source.splits,
        split=source.split,
    )
    return wanted, missing


def _strata(checkpoint: str, source: Source, asked: Asked, wanted: Wanted) -> Work:
    named = planning.plan_checkpoint(
        checkpoint,
        source.digest,
        source.split,
        len(source.items),
        pregen=True,
        wanted=wanted,
        decoding=asked.decoding.model_dump(),
        precision=asked.precision,
    ).named
    scores = {family: named[family] for family in wanted.families}
    model = Studied(named["columns"], scores, named["captions"], named["references"])
    return studies.strata(model, asked.idf)
