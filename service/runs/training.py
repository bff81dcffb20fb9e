"""Learned metrics: checking and planning their training, its answer, and the known models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from prescore.models.identifiers import LEARNED
from prescore.models.learned import AccordCard, Learned, ModelCard
from service.contract import assets, results
from service.contract.api.training import (
    CaptionerInput,
    PreferenceInput,
    RatingInput,
    TrainingRequest,
)
from service.contract.assets import AssetFolders
from service.contract.errors import Conflict, InvalidRequest
from service.contract.metrics import catalogue, objectives
from service.contract.metrics.objectives import TRAINERS
from service.contract.plan import metric_requests, planning
from service.contract.plan.metric_requests import ModelName
from service.contract.plan.planning import Plan, TrainingCaptioner
from service.contract.plan.tasks import Blob
from service.engine.blobs import Blobs
from service.engine.service_parts import ServiceParts
from service.engine.tables import run_tasks, runs, task_rows
from service.runs import evaluations, run_store
from service.runs.run_store import NewRun, RunKind, RunView
from service.stored import datasets
from service.stored.datasets import PinnedSplit

_RECIPE = ("learning_rate", "beta", "epochs", "seed")


def begin_training(parts: ServiceParts, request: TrainingRequest) -> NewRun:
    _check_objective(request)
    pinned = datasets.pin_split(parts.records, request.dataset)
    further = [datasets.pin_split(parts.records, each) for each in request.further]
    of_people = request.objective == objectives.PEOPLE
    plan, warnings = (_by_people if of_people else _by_accord)(parts, request, pinned, further)
    hidden: dict[str, Any] = {
        "captioners": {"__all__": {"captions"}},
        "stopping": True,
        "judgements": True,
    }
    kept = request.model_dump(exclude=hidden)
    every = sum(each.images for each in (pinned, *further))
    sizes = replace(pinned.sizes, images=every)
    given = {each.evaluation for each in request.captioners or () if each.evaluation is not None}
    common = KIND.new_id(), KIND.name, kept, pinned, plan, warnings, request.deadline
    return NewRun(*common, others=given, sizes=sizes)


def _check_objective(request: TrainingRequest) -> None:
    """Raise, with all of them, for fields of another objective, and for those that it lacks."""
    asked, given = request.objective, request.model_fields_set
    others = {
        field: " or ".join(objectives.list_takers(asked, field))
        for field in sorted(given)
        if getattr(request, field) is not None
    }
    wrong = [
        (f"/{field}", f"expected it for the objective {of} alone, found {asked}")
        for field, of in others.items()
        if of
    ]
    wrong += [
        (f"/{field}", f"the objective {asked} needs it")
        for field in objectives.OBJECTIVES[asked].needs
        if getattr(request, field) is None
    ]
    if wrong:
        raise InvalidRequest(f"{wrong[0][0].strip('/')}: {wrong[0][1]}", wrong)


def _by_people(
    parts: ServiceParts,
    request: TrainingRequest,
    pinned: PinnedSplit,
    further: Sequence[PinnedSplit],
) -> tuple[Plan, Sequence[Mapping[str, Any]]]:
    recipe = _recipe(parts.places, request)
    captioners: list[TrainingCaptioner] = []
    warnings: list[Mapping[str, Any]] = []
    for place, given in enumerate(request.captioners or ()):
        captioner, odd = _captioner(parts, given, pinned, request.tokenizer, f"/captioners/{place}")
        captioners.append(captioner)
        warnings += odd
    rated = None if request.stopping is None else _stored(parts.blobs, request.stopping)
    of_dataset = pinned.captions, pinned.split
    plan = planning.plan_learned(*of_dataset, captioners, rated, recipe, _splits(further))
    return plan, warnings


def _by_accord(
    parts: ServiceParts,
    request: TrainingRequest,
    pinned: PinnedSplit,
    further: Sequence[PinnedSplit],
) -> tuple[Plan, Sequence[Mapping[str, Any]]]:
    told = request.judgements
    judged = None if told is None else _stored(parts.blobs, [*told.rated, *told.pairs])
    recipe = request.model_dump(include={"beta", "seed", "tokenizer"})
    of_dataset = pinned.captions, pinned.split
    return planning.plan_accord(*of_dataset, judged, recipe, _splits(further)), []


def _splits(further: Sequence[PinnedSplit]) -> list[tuple[str, str]]:
    return [(each.captions, each.split) for each in further]


def _answer(parts: ServiceParts, looked: RunView) -> Learned:  # noqa: ARG001  the signature of all kinds
    (task,) = looked.tasks
    done = task["status"] == "done"
    return Learned(
        **looked.common,
        metric=catalogue.name_learned_metric(TRAINERS[task["kind"]], task["result"])
        if done
        else None,
        model=results.parse_summary(task, ModelCard) or results.parse_summary(task, AccordCard),
    )


def find_model(parts: ServiceParts, identity: str) -> Path:
    """The path of a training's model; Conflict if there is none yet, or if the training failed."""
    training, _ = KIND.look(parts, identity)
    digest = run_store.find_result(parts.records, identity, "model")
    if digest is None:
        raise Conflict(run_store.explain_missing(training, "model", task="model"))
    return parts.blobs.path(digest)


def resolve_models(
    parts: ServiceParts, names: Sequence[str], field: str
) -> tuple[list[str], dict[str, str]]:
    """The metrics of a request by their shown names, and the digests of the models that these tell,
    which are stored where tasks read them. UnknownMetric points into `field`.
    """
    if not any(map(catalogue.read_model_digits, names)):
        return list(names), {}
    shown, found = metric_requests.resolve_models(names, list_known_models(parts), field)
    for (_, digest), path in assets.list_registered_models(parts.places).items():
        if digest in found.values():
            parts.blobs.put_file(path)
    return shown, found


def list_known_models(parts: ServiceParts) -> dict[ModelName, str]:
    """The models of learned metrics that requests can name, and where each comes from, as text."""
    query = (
        sa.select(runs, task_rows.c.kind.label("made_by"), task_rows.c.result)
        .join(run_tasks, run_tasks.c.run_id == runs.c.id)
        .join(task_rows, task_rows.c.key == run_tasks.c.task_key)
        .where(runs.c.kind == KIND.name, task_rows.c.status == "done")
        .order_by(runs.c.created_at)
    )
    found: dict[ModelName, str] = {}
    with parts.records.reading() as connection:
        for row in connection.execute(query):
            on = f"{row.dataset_name}@v{row.dataset_version}/{row.split}"
            name = TRAINERS[row.made_by], row.result
            found.setdefault(name, f"trained on {on} by {row.id}")
    for name in assets.list_registered_models(parts.places):
        found.setdefault(name, "registered by `prescore assets add learned`")
    return found


def _recipe(places: AssetFolders, request: TrainingRequest) -> dict[str, Any]:
    """The parameters of the training, which are part of its task's key."""
    for place, reason in enumerate(
        assets.explain_missing(name, places) for name in request.features
    ):
        if reason is not None:
            raise InvalidRequest(
                f"{request.features[place]} cannot be computed here: {reason}",
                [(f"/features/{place}", "expected a metric that is available")],
            )
    recipe = request.model_dump(include={*_RECIPE, "features", "tokenizer", "leave_out_rated"})
    recipe["learner"] = "network"  # a constant, by which tasks have the keys that they had
    return recipe | assets.list_feature_parameters(request.features, places)


def _captioner(
    parts: ServiceParts, given: CaptionerInput, pinned: PinnedSplit, tokenizer: str, field: str
) -> tuple[TrainingCaptioner, Sequence[Mapping[str, Any]]]:
    """A captioner with its captions stored, and warnings."""
    if given.captions is not None:
        captions, odd = datasets.store_captions(
            *(parts.blobs, given.captions, pinned),
            subset=True,
            tokenizer=tokenizer,
            field=f"{field}/captions",
        )
    else:
        assert given.evaluation is not None
        captions = evaluations.find_captions_on(
            parts, given.evaluation, pinned, f"{field}/evaluation"
        )
        odd = []
    warnings = [{**warning, "detail": f"{given.name}: {warning['detail']}"} for warning in odd]
    if given.trained_on is None:
        detail = f"nobody says what {given.name} was trained on"
        return TrainingCaptioner(given.name, Blob(captions)), [
            {"code": "unstated_training", "image": None, "detail": detail},
            *warnings,
        ]
    known_to_it = datasets.pin_split(parts.records, given.trained_on)
    trained_on = Blob(known_to_it.captions), known_to_it.split
    return TrainingCaptioner(given.name, Blob(captions), trained_on), warnings


def _stored(blobs: Blobs, judged: Sequence[RatingInput | PreferenceInput]) -> Blob:
    """Store judgements as a file of JSON lines, one for each."""
    lines = [each.model_dump_json() for each in judged]
    return Blob(blobs.put("\n".join(lines).encode()))


KIND = RunKind(
    name="training",
    prefix=LEARNED,
    noun="training",
    place="/v1/learned",
    out=Learned,
    answer=_answer,
)
