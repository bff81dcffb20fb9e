"""Plan of an evaluation: pure, made of its request and the facts that are known at submission."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from service.contract import limits
from service.contract.api.evaluations import EvaluationRequest
from service.contract.column_options import ColumnOptions
from service.contract.errors import InvalidRequest
from service.contract.gates import gates
from service.contract.gates.gates import ThresholdGate
from service.contract.gates.margins import MarginGate
from service.contract.metrics import catalogue
from service.contract.plan import estimates, planning, prices, tasks
from service.contract.plan.estimates import ESTIMATE
from service.contract.plan.planning import CheckpointPlanner, Plan
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.prices import TaskSizes
from service.contract.plan.tasks import KINDS, Blob, Task
from service.contract.results import StoredBaseline
from service.contract.wording import count_noun
from service.stored.datasets import PinnedSplit

# Tasks on people's references: name, kind, and the field of a request that asks for it.
_OF_REFERENCES = (
    ("prefix", "prefix", "pregen"),
    ("columns", "columns", "pregen"),
    ("tokens", "columns", "tokens"),
)


@dataclass(frozen=True)
class ComparedPair:
    """A comparison: the task whose result is compared with the file of a baseline, for metrics of
    one family; `pregen` are those on columns.
    """

    task: str
    result: str
    metrics: tuple[str, ...]

    @property
    def pregen(self) -> list[str]:
        full = dict.fromkeys(catalogue.find_metric(metric).name for metric in self.metrics)
        return [*full] if self.task == "columns" else []


@dataclass(frozen=True)
class KnownFacts:
    """Facts on which the plan of an evaluation depends besides its request.

    `model`: of a checkpoint; `captions`: the digest of those that were submitted; `history`: of
    evaluations for a forecast; `comparisons`: with baselines, by the name of their task;
    `past_scores`: the stored scores of baselines, by family; `is_decoded`: the model's captions
    were decoded before.
    """

    pinned: PinnedSplit
    sizes: TaskSizes
    wanted: PostgenRequest
    model: CheckpointPlanner | None = None
    captions: str | None = None
    history: str | None = None
    comparisons: Mapping[str, ComparedPair] = field(default_factory=dict)
    past_scores: Mapping[str, str] = field(default_factory=dict)
    is_decoded: bool = False


def plan_evaluation(request: EvaluationRequest, known: KnownFacts) -> Plan:
    """Plan the tasks by name: scores, comparisons with baselines, and an estimate for gates."""
    named = dict(_plan_scores(request, known).named)
    for name, pair in known.comparisons.items():
        sides = named[pair.task], Blob(pair.result)
        named[name] = planning.plan_comparison(*sides, known.pinned.people, pair.pregen)
    if request.gates and not known.is_decoded:
        tested, tests = _list_margin_metrics(request.gates, known)
        estimate = estimates.plan_estimate(named, known.past_scores, tested, tests)
        if estimate is not None:
            named[ESTIMATE] = estimate
    return Plan(named)


def _list_margin_metrics(texts: Sequence[str], known: KnownFacts) -> tuple[list[str], int]:
    """List the metrics of margins whose baseline is the one that estimates know, and count the
    tests of all margins.
    """
    margins = {gate for gate in map(gates.parse_gate, texts) if isinstance(gate, MarginGate)}
    tested = {metric for gate in margins for metric in gate.metrics}
    names = {
        catalogue.find_metric(metric).name
        for pair in known.comparisons.values()
        for metric in tested.intersection(pair.metrics)
        if known.past_scores.get(pair.task) == pair.result
    }
    return sorted(names), sum(len(gate.metrics) for gate in margins)


def _plan_scores(request: EvaluationRequest, known: KnownFacts) -> Plan:
    if known.model is not None:
        return known.model.plan()
    captions = None
    if known.captions is not None:
        split = known.pinned.captions, known.pinned.split, known.pinned.images
        captions = planning.plan_captions(known.captions, *split, known.wanted)
    if request.columns is None:
        assert captions is not None
        return captions
    return planning.plan_brought_columns(
        request.columns,
        captions,
        known.pinned.people,
        pregen=asks_for_pregen(request),
        options=ColumnOptions.model_validate(request),
        token_metrics=list_token_metrics(request),
        history=known.history,
    )


def name_comparisons(
    texts: Iterable[str], baselines: Mapping[str, StoredBaseline], stored: Container[str]
) -> dict[str, ComparedPair]:
    """Name the comparisons that gates of a difference need, with files that are stored. Metrics of
    one family may have different baselines (the best BLEU-1, the best BLEU-4).
    """
    parsed = map(gates.parse_gate, texts)
    gated = [gate for gate in parsed if not isinstance(gate, ThresholdGate)]
    metrics: dict[tuple[str, str], list[str]] = {}
    for metric in dict.fromkeys(metric for gate in gated for metric in gate.metrics):
        result = baselines[metric].result
        if result is not None and result in stored:
            metrics.setdefault((find_image_task(metric), result), []).append(metric)
    named: dict[str, ComparedPair] = {}
    for (task, result), theirs in metrics.items():
        first = f"comparison_{task}"
        names = chain([first], (f"{first}_{number}" for number in count(2)))
        free = next(name for name in names if name not in named)
        named[free] = ComparedPair(task, result, tuple(theirs))
    return named


def find_image_task(metric: str) -> str:
    """The name of the task whose result has the metric for each image."""
    if catalogue.find_metric(metric).family == "pregen":
        return "columns"
    return catalogue.find_metric_task(metric)


def list_pregen(request: EvaluationRequest) -> list[str] | None:
    """The requested pre-gen metrics; None: all, of which the headline ones are shown."""
    if request.pregen == "all" or (request.pregen is None and request.has_probabilities):
        return None
    return list(request.pregen or [])


def asks_for_pregen(request: EvaluationRequest) -> bool:
    return list_pregen(request) != []


def list_token_metrics(request: EvaluationRequest) -> list[str]:
    """The metrics of all tokens together that are requested or gated."""
    names = {*(list_pregen(request) or []), *gates.list_gate_metrics(request.gates)}
    return [name for name in catalogue.TOKEN_METRICS if name in names]


def check_plan_seconds(plan: Plan, sizes: TaskSizes) -> None:
    """Raise InvalidRequest if a part of a task would take longer than an attempt may."""
    for name, kind, place in _OF_REFERENCES:
        task = plan.named.get(name)
        if task is None:
            continue
        seconds, most = _price_part(task, sizes), KINDS[kind].seconds
        if seconds > most:
            raise InvalidRequest(
                f"of {sizes.images:,} images with {sizes.references:.0f} references each, a "
                f"vocabulary of {sizes.vocabulary:,} and size {sizes.size:,}, each of "
                f"{count_noun(max(1, len(task.parts)), 'part')} of {name} would take about "
                f"{seconds:,.0f} s; expected at most {most}: take a smaller split, or leave "
                f"{place} out",
                [(f"/{place}", "expected less work")],
            )
    captions = plan.named.get("captions")
    if captions is not None:
        check_search_seconds(captions, sizes)


def check_search_seconds(captions: Task, sizes: TaskSizes) -> None:
    """Raise if a part of a search would hold others up. Usual captions end after 12 of 50 words."""
    asked: Mapping[str, Any] = captions.parameters["decoding"]
    beam, words = asked["beam"], asked["max_words"]
    seconds = _price_part(captions, sizes)
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


def _price_part(task: Task, sizes: TaskSizes) -> float:
    return prices.price_task((task.parts or (task,))[0], sizes)
