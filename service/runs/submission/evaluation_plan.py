"""Checks and plans a request for an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.contract import limits
from service.contract.api.evaluations import DecodingInput, EvaluationRequest
from service.contract.errors import InvalidRequest
from service.contract.formats import outputs
from service.contract.gates import gates
from service.contract.metrics import catalogue
from service.contract.plan import estimates, metric_requests, planning, prices, tasks
from service.contract.plan.planning import Plan
from service.contract.plan.prices import TaskSizes
from service.contract.plan.tasks import KINDS
from service.contract.results import StoredBaseline, StoredEvaluation
from service.contract.wording import count_noun
from service.engine.service_parts import ServiceParts
from service.runs import evaluations, probes, run_store, training
from service.runs.run_store import NewRun
from service.runs.submission import forecast_history, gate_requirements, image_features
from service.stored import checkpoints, columns, datasets
from service.stored.checkpoints import UsableCheckpoint
from service.stored.datasets import PinnedSplit

# Tasks on people's references: name, kind, and the field of a request that asks for it.
_OF_REFERENCES = (
    ("prefix", "prefix", "pregen"),
    ("columns", "columns", "pregen"),
    ("tokens", "columns", "tokens"),
)
_STAGES = {"pregen": "pre-gen", "postgen": "post-gen"}


def begin_evaluation(parts: ServiceParts, request: EvaluationRequest) -> NewRun:
    pinned = datasets.pin_split(parts.records, request.dataset)
    model: UsableCheckpoint | None = None
    encoder: str | None = None
    request = _usual(request)
    odd: list[Mapping[str, Any]] = []
    if request.columns is not None:
        odd = _check_columns(parts, request.columns, request.units, pinned)
    if request.checkpoint is not None:
        model = checkpoints.use_checkpoint(parts.records, request.checkpoint)
        pinned, encoder = image_features.choose_features(parts, request, pinned, model.description)
    check_decoding(request.decoding)
    request = gate_requirements.add_gate_metrics(parts, request)
    names, models = training.resolve_models(parts, request.postgen, "/postgen")
    request = request.model_copy(update={"postgen": names})
    sizes = _sizes(pinned, model, parts.speed)
    plan, warnings = _plan(parts, request, pinned, models, sizes, model, encoder)
    _check_parts(plan, sizes)
    check_search_time(plan, sizes)
    plan, past = gate_requirements.add_comparisons(parts, request, pinned, plan)
    plan, forecast = forecast_history.add_forecast(parts, request, pinned, plan)
    with parts.records.reading() as connection:
        health = probes.find_health(connection, pinned)
    asked = request.model_dump(exclude={"captions"})
    known = StoredEvaluation(**asked, health=health, baselines=dict(past), forecast=forecast)
    return NewRun(
        evaluations.KIND.new_id(),
        evaluations.KIND.name,
        {**asked, **known.model_dump()},
        pinned,
        _with_looks(parts, request, plan, past),
        [*odd, *warnings],
        request.deadline,
        checkpoint=request.checkpoint,
        labels=request.labels,
        columns=request.columns,
        others={each.evaluation for each in past.values() if each.evaluation is not None},
        sizes=sizes,
    )


def _usual(request: EvaluationRequest) -> EvaluationRequest:
    """The request, without post-gen metrics where there are no captions for them."""
    if request.has_captions:
        return request
    if "postgen" in request.model_fields_set and request.postgen:
        raise InvalidRequest(
            f"{request.postgen[0]} is a metric of captions: columns alone have none",
            [("/postgen", "expected no metrics, or `captions` beside `columns`")],
        )
    return request.model_copy(update={"postgen": []})


def _check_columns(
    parts: ServiceParts, digest: str, units: str, pinned: PinnedSplit
) -> list[Mapping[str, Any]]:
    """Raise unless these columns are stored, have these units, and are of this split. Returns
    warnings.
    """
    if columns.get(parts.records, digest).pieces is None and units == "pieces":
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


def _with_looks(
    parts: ServiceParts, request: EvaluationRequest, plan: Plan, past: Mapping[str, StoredBaseline]
) -> Plan:
    """The plan with estimates, if there are gates, unless its captions are decoded already."""
    captions = plan.named.get("captions")
    if not request.gates or captions is None or run_store.is_task_done(parts.records, captions.key):
        return plan
    results = {catalogue.find_metric_task(name): found.result for name, found in past.items()}
    known = {family: at for family, at in results.items() if at is not None and parts.blobs.has(at)}
    return estimates.add_estimate(plan, known)


def _sizes(pinned: PinnedSplit, model: UsableCheckpoint | None, speed: float) -> TaskSizes:
    """By which the tasks are priced: the split's, the model's where they are known, and the
    workers'.
    """
    if model is None:
        return pinned.sizes
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


def _check_parts(plan: Plan, sizes: TaskSizes) -> None:
    """Raise if a part of the references' task would not end within the time of an attempt."""
    for name, kind, place in _OF_REFERENCES:
        task = plan.named.get(name)
        if task is None:
            continue
        seconds, most = prices.price_task((task.parts or (task,))[0], sizes), KINDS[kind].seconds
        if seconds > most:
            raise InvalidRequest(
                f"of {sizes.images:,} images with {sizes.references:.0f} references each, a "
                f"vocabulary of {sizes.vocabulary:,} and size {sizes.size:,}, each of "
                f"{count_noun(max(1, len(task.parts)), 'part')} of {name} would take about "
                f"{seconds:,.0f} s; expected at most {most}: take a smaller split, or leave "
                f"{place} out",
                [(f"/{place}", "expected less work")],
            )


def _plan(
    parts: ServiceParts,
    request: EvaluationRequest,
    pinned: PinnedSplit,
    models: Mapping[str, str],
    sizes: TaskSizes,
    model: UsableCheckpoint | None,
    encoder: str | None,
) -> tuple[Plan, Sequence[Mapping[str, Any]]]:
    _check_lists(request)
    families = _families(request.postgen)
    names = _pregen(request)
    wanted = metric_requests.gather_postgen(
        families,
        parts.places,
        tokenizer=request.tokenizer,
        idf=request.idf,
        bertscore=request.bertscore.model_dump(),
        splits=pinned.splits,
        split=pinned.split,
        models=models,
    )
    split = pinned.split, pinned.images
    captions: Plan | None = None
    warnings: Sequence[Mapping[str, Any]] = []
    if request.captions is not None:
        if names and request.columns is None:
            raise InvalidRequest(
                "pre-gen scores need a checkpoint; captions alone have none", [("/pregen", "")]
            )
        digest, warnings = datasets.store_captions(
            *(parts.blobs, request.captions, pinned),
            subset=request.subset,
            tokenizer=request.tokenizer,
        )
        captions = planning.plan_captions(digest, pinned.captions, *split, wanted)
    if request.columns is not None:
        found = planning.plan_brought_columns(
            request.columns,
            captions,
            pregen=names != [],
            units=request.units,
            corpus=_asks_for_corpus(request),
        )
        return found, warnings
    if captions is not None:
        return captions, warnings
    assert model is not None
    _check_units(request, model)
    plan = planning.plan_checkpoint(
        model.source,
        pinned.digest,
        *split,
        pregen=names != [],
        wanted=wanted,
        decoding=choose_search(request.decoding, model),
        precision=request.precision,
        tokens=None if request.tokens is None else request.tokens.model_dump(),
        references=pinned.captions,
        encoder=encoder,
        sizes=sizes,
        verified=model.verified,
        searches=OWN_SEARCH in model.description,
        units=request.units,
        corpus=_asks_for_corpus(request),
    )
    return plan, []


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


def _pregen(request: EvaluationRequest) -> list[str] | None:
    """The requested pre-gen metrics; None: all, of which the headline ones are shown."""
    if request.pregen == "all" or (request.pregen is None and request.has_probabilities):
        return None
    return list(request.pregen or [])


def _asks_for_corpus(request: EvaluationRequest) -> bool:
    return catalogue.CORPUS in [*(_pregen(request) or []), *gates.list_gate_metrics(request.gates)]


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


def check_search_time(plan: Plan, sizes: TaskSizes) -> None:
    """Raise if a part of a search would hold others up. Usual captions end after 12 of 50 words."""
    captions = plan.named.get("captions")
    if captions is None:
        return
    seconds = prices.price_task((captions.parts or (captions,))[0], sizes)
    asked = captions.parameters["decoding"]
    beam, words = asked["beam"], asked["max_words"]
    if beam * words <= tasks.LONG_SEARCH:
        seconds /= 4
    if seconds > limits.PART_SECONDS:
        raise InvalidRequest(
            f"of {sizes.images:,} images with a beam of {beam} and {words:,} "
            f"words, a vocabulary of {sizes.vocabulary:,} and size {sizes.size:,}, each of "
            f"{count_noun(max(1, len(captions.parts)), 'part')} would take about "
            f"{seconds:,.0f} s; expected at most {limits.PART_SECONDS:g}: lower `beam` "
            "or `max_words`",
            [("/decoding", "expected a shorter search")],
        )
