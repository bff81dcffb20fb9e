"""Submission of evaluations: a request is checked and completed, and known facts are gathered."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.contract.api.evaluations import DecodingInput, EvaluationRequest
from service.contract.column_options import ColumnOptions
from service.contract.errors import InvalidRequest
from service.contract.formats import outputs
from service.contract.gates import gates
from service.contract.metrics import catalogue
from service.contract.plan import metric_requests, prices
from service.contract.plan.planning import CheckpointPlanner
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.prices import TaskSizes
from service.contract.results import CommonCaption, MissingForecast, StoredBaseline
from service.engine.service_parts import ServiceParts
from service.runs import evaluations, probes, run_store, training
from service.runs.run_store import NewRun
from service.runs.submission import (
    baselines,
    evaluation_plan,
    forecast_history,
    gate_requirements,
    image_features,
    order_history,
)
from service.runs.submission.baselines import BaselineRequest
from service.runs.submission.evaluation_plan import KnownFacts
from service.stored import checkpoints, columns, datasets
from service.stored.checkpoints import UsableCheckpoint
from service.stored.datasets import PinnedSplit

_STAGES = {"pregen": "pre-gen", "postgen": "post-gen"}


def begin_evaluation(parts: ServiceParts, request: EvaluationRequest) -> NewRun:
    pinned = datasets.pin_split(parts.records, request.dataset)
    model: UsableCheckpoint | None = None
    encoder: str | None = None
    request = _drop_postgen_without_captions(request)
    warnings: list[Mapping[str, Any]] = []
    if request.columns is not None:
        warnings += _check_columns(parts, request.columns, request.units, pinned)
    if request.checkpoint is not None:
        model = checkpoints.use_checkpoint(parts, request.checkpoint, request.base)
        request = _choose_prompt(request, model)
        pinned, encoder = image_features.choose_features(parts, request, pinned, model.description)
    check_decoding(request.decoding)
    request = gate_requirements.add_gate_metrics(parts, request)
    names, models = training.resolve_models(parts, request.postgen, "/postgen")
    request = request.model_copy(update={"postgen": names})
    _check_lists(request)
    known = KnownFacts(
        pinned,
        _choose_sizes(request, pinned, model, parts.speed),
        _gather(parts, request, pinned, models),
    )
    if request.captions is not None:
        known, odd = _store_captions(parts, request, known)
        warnings += odd
    history = forecast_history.find_history(parts, request, pinned)
    if isinstance(history, str):
        known = replace(known, history=history)
    if model is not None:
        planner = _build_planner(request, known, model, encoder)
        past_systems = order_history.find_order_history(parts, request, pinned, planner)
        known = replace(known, model=replace(planner, order_history=past_systems))
    known, past = _find_baselines(parts, request, known)
    if request.gates:
        known = replace(known, is_decoded=_is_decoded(parts, known.model))
    plan = evaluation_plan.plan_evaluation(request, known)
    evaluation_plan.check_plan_seconds(plan, known.sizes)
    with parts.records.reading() as connection:
        health = probes.find_health(connection, pinned)
    return NewRun(
        evaluations.KIND.new_id(),
        evaluations.KIND.name,
        {
            **request.model_dump(exclude={"captions"}),
            "baselines": {name: each.model_dump() for name, each in past.items()},
            "health": health and {name: each.model_dump() for name, each in health.items()},
            "forecast": history.model_dump() if isinstance(history, MissingForecast) else None,
            "common": _find_common_caption(request),
            "own_prompt": None if model is None else model.description.get("prompt"),
        },
        pinned,
        plan,
        warnings,
        request.deadline,
        checkpoint=request.checkpoint,
        labels=request.labels,
        columns=request.columns,
        others={each.evaluation for each in past.values() if each.evaluation is not None},
        sizes=known.sizes,
    )


def _drop_postgen_without_captions(request: EvaluationRequest) -> EvaluationRequest:
    """The request, without post-gen metrics where there are no captions for them."""
    if request.has_captions:
        return request
    if "postgen" in request.model_fields_set and request.postgen:
        raise InvalidRequest(
            f"{request.postgen[0]} is a metric of captions: columns alone have none",
            [("/postgen", "expected no metrics, or `captions` beside `columns`")],
        )
    return request.model_copy(update={"postgen": []})


def _choose_prompt(request: EvaluationRequest, model: UsableCheckpoint) -> EvaluationRequest:
    """The request, without a prompt that is the checkpoint's own. Raises where it reads none."""
    own = model.description.get("prompt")
    if request.prompt is not None and own is None:
        raise InvalidRequest(
            "this checkpoint reads no prompt before a caption: leave `prompt` out",
            [("/prompt", "expected none")],
        )
    return request if request.prompt != own else request.model_copy(update={"prompt": None})


def _check_columns(
    parts: ServiceParts, digest: str, units: str, pinned: PinnedSplit
) -> list[Mapping[str, Any]]:
    """Raise unless these columns are stored, have these units, and are of this split. Returns
    warnings.
    """
    if columns.get(parts, digest).pieces is None and units == "pieces":
        raise InvalidRequest(
            "the file does not say which of its tokens are pieces of one word",
            [("/units", 'expected "words", by which each token is scored as one')],
        )
    fit = columns.compare_with_split(parts.blobs, digest, pinned)
    if fit.difference is not None:
        raise InvalidRequest(
            f"the columns are not of {pinned}: {fit.difference}",
            [("/columns", "expected the split's images and references, in its order")],
        )
    warning = outputs.warn_of_unknown_words(fit.unknown, fit.references)
    return [] if warning is None else [warning]


def _gather(
    parts: ServiceParts,
    request: EvaluationRequest,
    pinned: PinnedSplit,
    models: Mapping[str, str],
) -> PostgenRequest:
    return metric_requests.gather_postgen(
        _families(request.postgen),
        parts.places,
        tokenizer=request.tokenizer,
        idf=request.idf,
        bertscore=request.bertscore.model_dump(),
        splits=pinned.splits,
        split=pinned.split,
        models=models,
    )


def _store_captions(
    parts: ServiceParts, request: EvaluationRequest, known: KnownFacts
) -> tuple[KnownFacts, Sequence[Mapping[str, Any]]]:
    """Store the captions of a request; returns warnings, too."""
    if evaluation_plan.asks_for_pregen(request) and request.columns is None:
        raise InvalidRequest(
            "pre-gen scores need a checkpoint; captions alone have none", [("/pregen", "")]
        )
    assert request.captions is not None
    digest, warnings = datasets.store_captions(
        *(parts.blobs, request.captions, known.pinned),
        subset=request.subset,
        tokenizer=request.tokenizer,
    )
    return replace(known, captions=digest), warnings


def _find_common_caption(request: EvaluationRequest) -> Mapping[str, Any] | None:
    """Find the caption that at least half of the images have, of captions that were sent."""
    common = CommonCaption.find([each.caption for each in request.captions or ()])
    return None if common is None else common.model_dump()


def _build_planner(
    request: EvaluationRequest, known: KnownFacts, model: UsableCheckpoint, encoder: str | None
) -> CheckpointPlanner:
    _check_units(request, model)
    pinned = known.pinned
    return CheckpointPlanner(
        model.source,
        pinned.digest,
        pinned.split,
        pinned.images,
        pregen=evaluation_plan.asks_for_pregen(request),
        wanted=known.wanted,
        decoding=choose_search(request.decoding, model),
        options=ColumnOptions.model_validate(request),
        tokens=None if request.tokens is None else request.tokens.model_dump(),
        references=pinned.captions,
        encoder=encoder,
        sizes=known.sizes,
        verified=model.verified,
        searches=OWN_SEARCH in model.description,
        token_metrics=evaluation_plan.list_token_metrics(request),
        history=known.history,
    )


def _is_decoded(parts: ServiceParts, model: CheckpointPlanner | None) -> bool:
    """Tell whether the captions of a model were decoded before."""
    captions = None if model is None else model.captions
    return captions is not None and run_store.is_task_done(parts.records, captions.key)


def _find_baselines(
    parts: ServiceParts, request: EvaluationRequest, known: KnownFacts
) -> tuple[KnownFacts, Mapping[str, StoredBaseline]]:
    """The facts of the baselines that gates need, and the baseline of each metric with the name of
    its comparison.
    """
    if request.baseline is None or not request.gates:
        return known, {}
    some = known.captions if request.subset else None
    images = baselines.find_captioned_images(parts.blobs, some, known.pinned)
    sought = BaselineRequest(request.baseline, known.pinned, images, request.labels)
    past = baselines.find_baselines(parts, sought, gates.list_gate_metrics(request.gates))
    results = {each.result for each in past.values() if each.result is not None}
    stored = frozenset(result for result in results if parts.blobs.has(result))
    comparisons = evaluation_plan.name_comparisons(request.gates, past, stored)
    scores = {
        catalogue.find_metric_task(name): each.result
        for name, each in past.items()
        if each.result in stored
    }
    for name, pair in comparisons.items():
        for metric in pair.metrics:
            past[metric] = past[metric].model_copy(update={"comparison": name})
    return replace(known, comparisons=comparisons, past_scores=scores), past


def _choose_sizes(
    request: EvaluationRequest, pinned: PinnedSplit, model: UsableCheckpoint | None, speed: float
) -> TaskSizes:
    """Choose the sizes that tasks are priced by: the split's, the captions' if they were sent, the
    model's if known, and the workers'.
    """
    if model is None:
        if not request.captions:
            return pinned.sizes
        words = sum(len(each.caption.split()) for each in request.captions)
        return replace(pinned.sizes, caption_words=words / len(request.captions))
    told, vocabulary = model.description, model.description["vocabulary_size"]
    config = told.get("config") or {}
    sizes = [config[name] for name in ("size", "embedding_size", "image_size") if name in config]
    size = max(sizes, default=prices.USUAL.size)
    looks = told.get("inputs") in ("grid", "regions")
    if (looks or not config) and "parameters" in told:
        embedded = config.get("embedding_size", config.get("size", 0)) * vocabulary
        size = prices.estimate_model_size(told["parameters"] - embedded, vocabulary)
    products = told.get("picture_products", 0)
    found = replace(
        pinned.sizes, size=size, vocabulary=vocabulary, speed=speed, picture_products=products
    )
    if not looks or pinned.features is None:
        return found
    return replace(
        found, places=pinned.features.get("places", 1), place_size=pinned.features["size"]
    )


def _check_units(request: EvaluationRequest, model: UsableCheckpoint) -> None:
    has_pieces = model.description.get("units") == "pieces"
    if request.units == "pieces" and not has_pieces:
        raise InvalidRequest(
            "the tokens of this checkpoint are words", [("/units", 'expected "words"')]
        )
    if request.tokens is not None and request.tokens.top > 1 and has_pieces:
        raise InvalidRequest(
            "the tokens of this checkpoint are pieces of words, of which only the first is kept",
            [("/tokens/top", "expected 1")],
        )


def _families(postgen: Sequence[str]) -> list[str]:
    """The names of the tasks that these metrics need, each once."""
    full = [one for name in postgen for one in catalogue.expand_groups([name])]
    return list(dict.fromkeys(map(catalogue.find_metric_task, full)))


def _check_lists(request: EvaluationRequest) -> None:
    """Raise, with all of them, for metrics of one family in the list of the other."""
    pregen = [] if isinstance(request.pregen, str) else request.pregen or []
    wrong = [*_others("pregen", "postgen", pregen), *_others("postgen", "pregen", request.postgen)]
    if len(wrong) > 1:
        raise InvalidRequest(f"{len(wrong)} metrics are in the wrong list", wrong)
    for pointer, said in wrong:
        expected = _STAGES[pointer.split("/")[1]]
        raise InvalidRequest(said, [(pointer, f"expected a {expected} metric")])


def _others(field: str, other: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The metrics in one list that belong in the other: where they are, and what to do."""
    return [
        (f"/{field}/{place}", f"{name} is a {_STAGES[other]} metric: ask for it in `{other}`")
        for place, name in enumerate(names)
        if catalogue.find_metric(catalogue.expand_groups([name])[0]).family == other
    ]


OWN_SEARCH = "beams"  # said of a model that searches in its own way


def check_decoding(decoding: DecodingInput) -> None:
    if decoding.min_words > decoding.max_words:
        raise InvalidRequest(
            f"min_words {decoding.min_words} is more than max_words {decoding.max_words}",
            [("/decoding/min_words", "expected at most max_words")],
        )


def choose_search(asked: DecodingInput, model: UsableCheckpoint) -> dict[str, Any]:
    """The search for captions; a model that has one of its own keeps what is not asked for, and
    captions are not longer than what the model reads.
    """
    own = model.description
    if OWN_SEARCH in own:
        changed = asked.model_dump(include=asked.model_fields_set)
        return {"beam": own[OWN_SEARCH], "max_words": own["longest"], **changed}
    found = asked.model_dump()
    longest = own.get("longest")
    for name in ("min_words", "max_words"):
        if longest is not None and found[name] > longest:
            if name in asked.model_fields_set:
                raise InvalidRequest(
                    f"{name} {found[name]} is more than the model reads: {longest} pieces",
                    [(f"/decoding/{name}", f"expected at most {longest}")],
                )
            found[name] = longest
    return found
