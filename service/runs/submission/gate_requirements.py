"""Metrics that gates name, added to a request."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from service.contract.api.evaluations import EvaluationRequest
from service.contract.errors import InvalidRequest, RequestRefused
from service.contract.gates import gates, ranges
from service.contract.gates.gates import ParsedGate
from service.contract.metrics import catalogue
from service.contract.plan import metric_requests
from service.engine.service_parts import ServiceParts
from service.runs import training


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
