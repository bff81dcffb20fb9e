"""The tasks of the probes: a table for each probe, and the metrics' health from all tables."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from prescore.models.metrics import MetricHealth
from prescore.models.probes import ProbeRow
from service.contract.formats.bundles import stored
from service.contract.formats.strict_json import finite
from service.contract.metrics import catalogue
from service.contract.metrics.families import kind_of
from service.contract.plan import planning
from service.contract.results import Health, ProbeTable
from workers.jobs.request import Request, Result, read_pairs, summed
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.analysis.probing.material import Material
    from workers.analysis.probing.scoring import Scorer


def probe(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    from workers.analysis.probing.asking import Options
    from workers.analysis.probing.probes import run

    asked = request.parameters
    rows = run(
        asked["probe"],
        _material(request, toolbox),
        _scorer(request, toolbox),
        Options(**asked["options"]),
        progress=progress,
    )
    return summed(ProbeTable(rows=[ProbeRow(**finite(asdict(row))) for row in rows]))


def health(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.analysis.probing.health import health
    from workers.analysis.probing.table import Row

    tables = [ProbeTable.model_validate_json(path.read_bytes()) for path in request.inputs.values()]
    rows = [Row(**row.model_dump()) for table in tables for row in table.rows]
    found = {name: MetricHealth(**finite(asdict(each))) for name, each in health(rows).items()}
    return summed(Health(health=found))


def _material(request: Request, toolbox: Toolbox) -> "Material":
    from workers.analysis.probing import material

    asked = request.parameters
    items = stored.read_split(request.inputs["dataset"], asked["split"])
    outputs, training = None, None
    if "captions" in request.inputs:
        _, outputs = read_pairs(request.inputs["captions"])
    if asked["training"] is not None:
        learned = stored.read_split(request.inputs["dataset"], asked["training"])
        training = [caption for item in learned for caption in item.references]
    people = [item.references for item in items]
    return material.prepare(
        people, asked["tokenizer"], toolbox.jvm(), outputs=outputs, training=training
    )


def _scorer(request: Request, toolbox: Toolbox) -> "Scorer":
    from workers.analysis.probing.scoring import scorer

    asked = request.parameters
    tools = {task: _tools(task, request, toolbox) for task in catalogue.tasks_of(asked["metrics"])}
    return scorer(asked["metrics"], toolbox.jvm(), tools)


def _tools(task: str, request: Request, toolbox: Toolbox) -> dict[str, Any]:
    """What a metric needs besides captions and references; a model that its name tells is an input
    of the probe.
    """
    own, model = request.parameters["own"].get(task, {}), planning.input_of_model(task)
    if model in request.inputs:
        path, digest = request.inputs[model], request.digests[model]
        return toolbox.named(kind_of(task), digest, path, own)
    return toolbox.bring(task, own)
