"""Requirements of gates: metrics, baselines, and comparisons with these."""

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from typing import Any

from service.contract.api.evaluations import EvaluationRequest
from service.contract.errors import InvalidRequest, RequestRefused
from service.contract.gates import gates, ranges
from service.contract.gates.gates import NoDropGate, ParsedGate
from service.contract.metrics import catalogue
from service.contract.plan import metric_requests, planning
from service.contract.plan.planning import Plan
from service.contract.plan.tasks import Blob
from service.contract.results import StoredBaseline
from service.engine.service_parts import ServiceParts
from service.runs import training
from service.runs.submission import baselines
from service.runs.submission.baselines import BaselineRequest
from service.stored.datasets import PinnedSplit


def add_gate_metrics(parts: ServiceParts, request: EvaluationRequest) -> EvaluationRequest:
    """The request with the metrics that its gates name. Raises, with a pointer, for a wrong gate
    and for one that lacks a baseline or a checkpoint.
    """
    if request.until == "verdict" and not request.gates:
        raise InvalidRequest(
            "a request that ends with its verdict needs gates",
            [("/gates", "expected at least one gate")],
        )
    catalogue.expand_groups(request.trust)
    names = _metrics(parts, request)
    families = {name: catalogue.find_metric(name).family for name in names}
    pregen, postgen = (
        [name for name in families if families[name] == family] for family in ("pregen", "postgen")
    )
    added: dict[str, Any] = {"postgen": _joined(request.postgen, postgen)}
    if isinstance(request.pregen, list):
        added["pregen"] = _joined(request.pregen, pregen)
    return request.model_copy(update=added)


def _metrics(parts: ServiceParts, request: EvaluationRequest) -> list[str]:
    """The metrics of all gates. Raises for all that are wrong at once."""
    names: list[str] = []
    wrong: list[RequestRefused] = []
    for place, text in enumerate(request.gates):
        try:
            with _at(f"/gates/{place}"):
                gate = _parse_gate(text, request)
                if any(map(catalogue.read_model_digits, gate.metrics)):
                    metric_requests.resolve_models(gate.metrics, training.list_known_models(parts))
        except RequestRefused as error:
            wrong.append(error)
        else:
            names += gate.metrics
    if len(wrong) > 1:
        raise InvalidRequest(
            f"{len(wrong)} of {len(request.gates)} gates are wrong",
            [(error.pointer or "/gates", error.detail) for error in wrong],
        )
    if wrong:
        raise wrong[0]
    return names


def _parse_gate(text: str, request: EvaluationRequest) -> ParsedGate:
    gate = gates.parse_gate(text)
    ranges.check_gate_range(gate)
    if gate.needs_baseline and request.baseline is None:
        raise InvalidRequest(
            f"{text!r} needs a baseline",
            [("/baseline", "expected a label such as branch=main, an evaluation's id, or best")],
        )
    for name in gate.metrics:
        family = catalogue.find_metric(name).family
        if family == "pregen" and not request.has_probabilities:
            raise InvalidRequest(
                f"{name} is a pre-gen metric: it needs a checkpoint, captions have none"
            )
        if family == "postgen" and not request.has_captions:
            raise InvalidRequest(
                f"{name} is a metric of captions: it needs `captions`, columns have none"
            )
    return gate


@contextmanager
def _at(pointer: str) -> Iterator[None]:
    """Set the pointer of a refusal that is raised inside."""
    try:
        yield
    except RequestRefused as error:
        error.pointer = pointer
        raise


def _joined(asked: Iterable[str], named: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*asked, *named]))


def add_comparisons(
    parts: ServiceParts, request: EvaluationRequest, pinned: PinnedSplit, plan: Plan
) -> tuple[Plan, Mapping[str, StoredBaseline]]:
    """The plan with the comparisons that gates need, and the baseline of each metric with the name
    of its comparison.
    """
    if request.baseline is None or not request.gates:
        return plan, {}
    images = baselines.find_captioned_images(parts.blobs, _partial(request, plan), pinned)
    sought = BaselineRequest(request.baseline, pinned, images, request.labels)
    found = baselines.find_baselines(parts, sought, gates.list_gate_metrics(request.gates))
    named = dict(plan.named)
    for (mine, result), metrics in _compared(request.gates, found).items():
        if parts.blobs.has(result):
            name = _free(f"comparison_{mine}", named)
            full = dict.fromkeys(catalogue.find_metric(metric).name for metric in metrics)
            pregen = [*full] if mine == "columns" else []
            named[name] = planning.plan_comparison(plan.named[mine], Blob(result), pregen)
            for metric in metrics:
                found[metric] = found[metric].model_copy(update={"comparison": name})
    return Plan(named), found


def _compared(
    texts: Iterable[str], past: Mapping[str, StoredBaseline]
) -> dict[tuple[str, str], list[str]]:
    """The metrics of `no_significant_drop`, by the task and the baseline's file to compare. Metrics
    of one family may have different baselines (the best BLEU-1, the best BLEU-4).
    """
    gated = [gate for gate in map(gates.parse_gate, texts) if isinstance(gate, NoDropGate)]
    found: dict[tuple[str, str], list[str]] = {}
    for metric in dict.fromkeys(metric for gate in gated for metric in gate.metrics):
        result = past[metric].result
        if result is not None:
            found.setdefault((baselines.find_image_task(metric), result), []).append(metric)
    return found


def _free(name: str, taken: Container[str]) -> str:
    numbered = (f"{name}_{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)


def _partial(request: EvaluationRequest, plan: Plan) -> str | None:
    """The digest of captions that may be of a part of the split; None for all others."""
    if request.captions is None or not request.subset:
        return None
    sent = (task.inputs.get("captions") for task in plan.named.values())
    return next((str(at) for at in sent if isinstance(at, Blob)), None)
