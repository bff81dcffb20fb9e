"""Learned metrics: checking and planning their training, its answer, and the known models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from service.contract import results
from service.contract.api.learned import CaptionerIn, LearnedIn, LearnedOut, RatedIn
from service.contract.api.texts import LEARNED
from service.contract.errors import InvalidRequest, NotFound
from service.contract.metrics import catalogue
from service.contract.plan import assets, planning
from service.contract.plan.assets import Places
from service.contract.plan.planning import Captioner
from service.contract.plan.works import Blob
from service.runs import base, evaluations, lacking
from service.runs.base import Kind, Looked, Run
from service.stored import datasets
from service.stored.datasets import Pinned
from service.works.blobs import Blobs
from service.works.parts import Parts
from service.works.tables import run_works, runs, work_rows

_RECIPE = ("learner", "learning_rate", "beta", "epochs", "seed")


def begin(parts: Parts, request: LearnedIn) -> Run:
    pinned = datasets.pin(parts.records, request.dataset)
    recipe = _recipe(parts.places, request)
    captioners: list[Captioner] = []
    warnings: list[Mapping[str, Any]] = []
    for place, given in enumerate(request.captioners):
        captioner, odd = _captioner(parts, given, pinned, f"/captioners/{place}")
        captioners.append(captioner)
        warnings += odd
    rated = None if request.stopping is None else _stored(parts.blobs, request.stopping)
    plan = planning.plan_learned(pinned.captions, pinned.split, captioners, rated, recipe)
    kept = request.model_dump(exclude={"captioners": {"__all__": {"captions"}}, "stopping": True})
    return Run(KIND.new_id(), KIND.name, kept, pinned, plan, warnings, request.deadline)


def _answer(parts: Parts, looked: Looked) -> LearnedOut:  # noqa: ARG001  the signature of all kinds
    (work,) = looked.works
    done = work["status"] == "done"
    return LearnedOut(
        **looked.common,
        metric=catalogue.learned(work["result"]) if done else None,
        model=results.of(work, results.Model),
    )


def model(parts: Parts, identity: str) -> Path:
    """The path of a training's model; NotFound if there is none yet."""
    training, _ = KIND.look(parts, identity)
    digest = base.result_of(parts.records, identity, "model")
    if digest is None:
        raise NotFound(lacking.told(training, "model", work="model"))
    return parts.blobs.path(digest)


def known(parts: Parts) -> dict[str, str]:
    """The models that evaluations can use: digest -> where it comes from, as text."""
    query = (
        sa.select(runs, work_rows.c.result)
        .join(run_works, run_works.c.run_id == runs.c.id)
        .join(work_rows, work_rows.c.key == run_works.c.work_key)
        .where(runs.c.kind == KIND.name, work_rows.c.status == "done")
        .order_by(runs.c.created_at)
    )
    found: dict[str, str] = {}
    with parts.records.reading() as connection:
        for row in connection.execute(query):
            on = f"{row.dataset_name}@v{row.dataset_version}/{row.split}"
            found.setdefault(row.result, f"trained on {on} by {row.id}")
    own = assets.here("learned", parts.places)
    if own is not None:
        found.setdefault(f"sha256:{own.sha256}", "registered by `prescore assets add learned`")
    return found


def store_own(parts: Parts, digests: Sequence[str]) -> None:
    """Store the registered model as a blob, where works read it, if it is among `digests`."""
    own = assets.here("learned", parts.places)
    if own is not None and f"sha256:{own.sha256}" in digests:
        parts.blobs.put_file(own.path)


def _recipe(places: Places, request: LearnedIn) -> dict[str, Any]:
    """The parameters of the training, which are part of its work's key."""
    for place, reason in enumerate(assets.missing(name, places) for name in request.features):
        if reason is not None:
            raise InvalidRequest(
                f"{request.features[place]} cannot be computed here: {reason}",
                [(f"/features/{place}", "expected a metric that is available")],
            )
    recipe = request.model_dump(include={*_RECIPE, "features", "tokenizer", "leave_out_rated"})
    return recipe | assets.of_features(request.features, places)


def _captioner(
    parts: Parts, given: CaptionerIn, pinned: Pinned, field: str
) -> tuple[Captioner, Sequence[Mapping[str, Any]]]:
    """A captioner with its captions stored, and warnings."""
    if given.captions is not None:
        captions, odd = datasets.store_captions(
            parts.blobs, given.captions, pinned, subset=True, field=f"{field}/captions"
        )
    else:
        assert given.evaluation is not None
        captions = evaluations.captions_on(parts, given.evaluation, pinned, f"{field}/evaluation")
        odd = []
    warnings = [{**warning, "detail": f"{given.name}: {warning['detail']}"} for warning in odd]
    if given.trained_on is None:
        detail = f"nobody says what {given.name} was trained on"
        return Captioner(given.name, Blob(captions)), [
            {"code": "unstated_training", "image": None, "detail": detail},
            *warnings,
        ]
    known_to_it = datasets.pin(parts.records, given.trained_on)
    trained_on = Blob(known_to_it.captions), known_to_it.split
    return Captioner(given.name, Blob(captions), trained_on), warnings


def _stored(blobs: Blobs, rated: Sequence[RatedIn]) -> Blob:
    """Store ratings as a file of JSON lines, one for each rated caption."""
    lines = [each.model_dump_json() for each in rated]
    return Blob(blobs.put("\n".join(lines).encode()))


KIND = Kind(
    name="training",
    prefix=LEARNED,
    noun="training",
    place="/v1/learned",
    out=LearnedOut,
    answer=_answer,
)
