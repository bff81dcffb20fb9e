"""What gates add to an evaluation: metrics and baselines."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from service import baselines
from service.baselines import Sought
from service.contract import catalogue, gates
from service.contract.blobs import Blobs
from service.contract.errors import InvalidRequest, RequestRefused
from service.contract.gates import Gate
from service.contract.planning import Plan
from service.contract.records import Records
from service.contract.requests import EvaluationIn
from service.contract.works import Blob
from service.datasets import Pinned


def completed(request: EvaluationIn) -> EvaluationIn:
    """With the metrics that its gates name. Refuses, with its place, what is no gate and what is
    wanting for one.
    """
    if request.until == "verdict" and not request.gates:
        raise InvalidRequest(
            "a request that ends with its verdict needs gates",
            [("/gates", "expected at least one gate")],
        )
    for place, name in enumerate(request.trust):
        with _at(f"/trust/{place}"):
            catalogue.expand([name])
    names: list[str] = []
    for place, text in enumerate(request.gates):
        with _at(f"/gates/{place}"):
            names += _checked(text, request).metrics
    families = {name: catalogue.metric(name).family for name in names}
    pregen, postgen = (
        [name for name in families if families[name] == family] for family in ("pregen", "postgen")
    )
    added: dict[str, Any] = {"postgen": _joined(request.postgen, postgen)}
    if isinstance(request.pregen, list):
        added["pregen"] = _joined(request.pregen, pregen)
    return request.model_copy(update=added)


def _checked(text: str, request: EvaluationIn) -> Gate:
    gate = gates.parse(text)
    if gate.needs_baseline and request.baseline is None:
        raise InvalidRequest(
            f"{text!r} needs a baseline",
            [("/baseline", "expected a label such as branch=main, an evaluation's id, or best")],
        )
    if request.captions is not None:
        early = [name for name in gate.metrics if catalogue.metric(name).family == "pregen"]
        if early:
            raise InvalidRequest(
                f"{early[0]} is a pre-gen metric: it needs a checkpoint, captions have none"
            )
    return gate


@contextmanager
def _at(pointer: str) -> Iterator[None]:
    """Says where in the request it is, unless the refusal knows better."""
    try:
        yield
    except RequestRefused as error:
        error.pointer = error.pointer or pointer
        raise


def _joined(asked: Iterable[str], named: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*asked, *named]))


def past(
    records: Records, blobs: Blobs, request: EvaluationIn, pinned: Pinned, plan: Plan
) -> Mapping[str, Any]:
    """What stands for the past, by metric."""
    if request.baseline is None or not request.gates:
        return {}
    images = baselines.answered(blobs, _partial(request, plan), pinned)
    sought = Sought(request.baseline, pinned, images)
    return baselines.find(records, blobs, sought, gates.names(request.gates))


def _partial(request: EvaluationIn, plan: Plan) -> str | None:
    """The digest of captions that may answer a part of the split alone."""
    if request.captions is None or not request.subset:
        return None
    sent = (work.inputs.get("captions") for work in plan.named.values())
    return next((str(at) for at in sent if isinstance(at, Blob)), None)
