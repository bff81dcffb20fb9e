"""Taking a request in: what it asks for is checked, planned, and recorded as an evaluation."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.api.requests import Decoding, EvaluationIn
from service.contract.errors import Conflict, InvalidRequest
from service.contract.metrics import catalogue
from service.contract.plan import asked, estimates, planning
from service.contract.plan.assets import Places
from service.contract.plan.planning import Plan
from service.runs import base, forecasts, gating, probes, training
from service.runs.base import Run
from service.stored import checkpoints, datasets
from service.stored.datasets import Pinned
from service.works.blobs import Blobs
from service.works.records import Records
from service.works.tables import idempotency


@dataclass(frozen=True)
class Submitted:
    id: str
    replayed: bool


def submit(
    records: Records,
    blobs: Blobs,
    places: Places,
    request: EvaluationIn,
    key: str | None,
    caller: str = "anyone",
) -> Submitted:
    """Plans and records an evaluation; the same Idempotency-Key answers with the first one."""
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    if key is not None:
        found = _replay(records, caller, key, digest)
        if found is not None:
            return Submitted(found, replayed=True)
    pinned = datasets.pin(records, request.dataset)
    _check_decoding(request.decoding)
    request = gating.completed(records, places, request)
    names, models = _with_models(records, blobs, places, request.postgen)
    request = request.model_copy(update={"postgen": names})
    plan, warnings = _plan(records, blobs, places, request, pinned, models)
    plan, past = gating.with_past(records, blobs, request, pinned, plan)
    plan, forecast = forecasts.add(records, blobs, request, pinned, plan)
    plan = _with_looks(records, blobs, plan, past)
    identity = f"ev_{secrets.token_urlsafe(18)}"
    with records.transaction() as connection:
        if key is not None:
            claimed = _claim(connection, records, caller, key, digest, identity)
            if claimed is not None:
                return Submitted(claimed, replayed=True)
        kept = request.model_dump(exclude={"captions"})
        health = probes.health_of(connection, pinned)
        run = Run(
            identity,
            {**kept, "health": health, "baselines": past, "forecast": forecast},
            pinned,
            plan,
            warnings,
            request.deadline,
            checkpoint=request.checkpoint,
            labels=request.labels,
        )
        base.insert(connection, records, run)
    return Submitted(identity, replayed=False)


def _with_looks(
    records: Records, blobs: Blobs, plan: Plan, past: Mapping[str, Mapping[str, Any]]
) -> Plan:
    """At captions while they are decoded: of those that have been, the scores come as soon."""
    captions = plan.named.get("captions")
    if captions is None or base.is_done(records, captions.key):
        return plan
    results = {catalogue.work_of(name): found.get("result") for name, found in past.items()}
    known = {family: at for family, at in results.items() if at is not None and blobs.has(at)}
    return estimates.with_estimate(plan, known)


def _check_decoding(decoding: Decoding) -> None:
    if decoding.min_words > decoding.max_words:
        raise InvalidRequest(
            f"min_words {decoding.min_words} is more than max_words {decoding.max_words}",
            [("/decoding/min_words", "expected at most max_words")],
        )


def _replay(records: Records, caller: str, key: str, digest: str) -> str | None:
    with records.reading() as connection:
        return _known(connection, caller, key, digest)


def _known(connection: Connection, caller: str, key: str, digest: str) -> str | None:
    row = connection.execute(
        sa.select(idempotency).where(idempotency.c.caller == caller, idempotency.c.key == key)
    ).first()
    if row is None:
        return None
    if row.request != digest:
        raise InvalidRequest(
            "this Idempotency-Key came with another request before; use a new key for a new request"
        )
    return str(row.evaluation_id)


def _claim(
    connection: Connection, records: Records, caller: str, key: str, digest: str, identity: str
) -> str | None:
    """Takes the key for this evaluation, or says whose it is."""
    taken = records.add_new(
        connection,
        idempotency,
        caller=caller,
        key=key,
        request=digest,
        evaluation_id=identity,
        created_at=time.time(),
    )
    if taken:
        return None
    known = _known(connection, caller, key, digest)
    if known is None:
        raise Conflict("a request with this Idempotency-Key is on its way; ask again")
    return known


def _with_models(
    records: Records, blobs: Blobs, places: Places, postgen: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Metrics as they are shown, and the digests of the models that some of them name."""
    if not any(map(catalogue.model_of, postgen)):
        return list(postgen), {}
    names, models = asked.with_models(postgen, training.known(records, places), "/postgen")
    training.store_own(blobs, places, list(models.values()))
    return names, models


def _plan(
    records: Records,
    blobs: Blobs,
    places: Places,
    request: EvaluationIn,
    pinned: Pinned,
    models: Mapping[str, str],
) -> tuple[Plan, Sequence[Mapping[str, Any]]]:
    families = _families(request.postgen)
    names = _pregen(request)
    wanted = asked.wanted(
        families,
        places,
        tokenizer=request.tokenizer,
        idf=request.idf,
        bertscore=request.bertscore.model_dump(),
        splits=pinned.splits,
        split=pinned.split,
        models=models,
    )
    split = pinned.digest, pinned.split, pinned.images
    if request.captions is not None:
        if names:
            raise InvalidRequest(
                "pre-gen scores need a checkpoint; captions alone have none", [("/pregen", "")]
            )
        digest, warnings = datasets.store_captions(
            blobs, request.captions, pinned, subset=request.subset
        )
        return planning.plan_captions(digest, *split, wanted), warnings
    assert request.checkpoint is not None
    _check_match(checkpoints.describe(records, request.checkpoint), pinned)
    plan = planning.plan_checkpoint(
        request.checkpoint,
        *split,
        pregen=names != [],
        wanted=wanted,
        decoding=request.decoding.model_dump(),
    )
    return plan, []


def _families(postgen: Sequence[str]) -> list[str]:
    """The works that these metrics need, each once."""
    found: dict[str, None] = {}
    for place, name in enumerate(postgen):
        for full in catalogue.expand([name]):
            spec = catalogue.metric(full)
            if spec.family != "postgen":
                raise InvalidRequest(
                    f"{name} is a pre-gen metric: ask for it in `pregen`",
                    [(f"/postgen/{place}", "expected a post-gen metric")],
                )
            found[catalogue.work_of(full)] = None
    return list(found)


def _pregen(request: EvaluationIn) -> list[str] | None:
    """Names asked for; None means all, with the headline ones shown."""
    if request.pregen == "all" or (request.pregen is None and request.checkpoint is not None):
        return None
    names = list(request.pregen or [])
    for place, name in enumerate(names):
        if catalogue.metric(name).family != "pregen":
            raise InvalidRequest(
                f"{name} is a post-gen metric: ask for it in `postgen`",
                [(f"/pregen/{place}", "expected a pre-gen metric")],
            )
    return names


def _check_match(description: Mapping[str, Any], pinned: Pinned) -> None:
    """Checkpoint and dataset belong together: the same encoder, the same size of features."""
    if pinned.features is None:
        raise InvalidRequest(
            f"dataset {pinned} has captions alone: a checkpoint needs its image features",
            [("/dataset", "expected a dataset with features")],
        )
    if description["encoder"] != pinned.features["encoder"]:
        raise InvalidRequest(
            f"the checkpoint was trained on features of {_encoder(description['encoder'])}, "
            f"the dataset has those of {_encoder(pinned.features['encoder'])}",
            [("/dataset", "expected the checkpoint's encoder")],
        )
    expected = description["config"]["feature_size"]
    if expected != pinned.features["size"]:
        raise InvalidRequest(
            f"the checkpoint expects image features of size {expected}, "
            f"the dataset's have {pinned.features['size']}",
            [("/dataset", f"expected features of size {expected}")],
        )


def _encoder(encoder: Mapping[str, str]) -> str:
    return f"{encoder['name']} ({encoder['digest']})"
