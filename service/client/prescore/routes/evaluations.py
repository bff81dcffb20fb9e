"""Requests for evaluations: begin one, and read what it has."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from prescore.errors import InvalidArgument
from prescore.http import answers, retries
from prescore.http.addresses import Address
from prescore.http.steps import Request, Steps, segment
from prescore.models import CocoResults, Evaluation, PregenScores, Tokens
from prescore.names import check_known
from prescore.routes import asking


class Asked(TypedDict, total=False):
    """What an evaluation computes, and how; what is left out is as the service does by default."""

    pregen: Literal["all"] | Sequence[str] | None
    postgen: Sequence[str] | None
    units: str | None
    precision: str | None
    tokens: Mapping[str, Any] | None
    tokenizer: str | None
    decoding: Mapping[str, Any] | None
    idf: str | None
    bertscore: Mapping[str, Any] | None
    gates: Sequence[str] | None
    baseline: str | None
    if_no_baseline: str | None
    until: str | None
    trust: Sequence[str] | None
    deadline: int | None


class Submission(Asked, total=False):
    """Arguments of `submit`: `checkpoint` (a digest), or `captions` and `columns` (a digest) or one
    of them; and how it is scored.
    """

    checkpoint: str | None
    columns: str | None
    captions: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]] | None
    subset: bool | None
    labels: Mapping[str, str] | None
    wait: int | None
    idempotency_key: str | None


_LISTS = ("pregen", "postgen", "gates", "trust")


def begun(address: Address, dataset: str, asked: Submission) -> Steps[Evaluation]:
    check_known("argument", asked, Submission.__annotations__)
    fields: dict[str, Any] = {"dataset": dataset, **asked}
    wait, key = fields.pop("wait", None), fields.pop("idempotency_key", None)
    for name in ("checkpoint", "columns"):
        _check_digest(name, fields.get(name))
    fields["captions"] = asking.listed(fields.get("captions"))
    for name in _LISTS:
        fields[name] = asking.names(name, fields.get(name))
    others = fields["captions"] is not None or fields.get("columns") is not None
    if (fields.get("checkpoint") is not None) == others:
        raise InvalidArgument("expected a checkpoint or captions, one of the two; or columns")
    place = Evaluation.PLACE
    return asking.submitted(address, Evaluation, place, fields, wait=wait or 0, key=key)


def _check_digest(name: str, given: object) -> None:
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".safetensors")):
        raise InvalidArgument(
            f"{name}: expected a digest, sha256:..., found the file {str(given)!r:.200}: "
            f"upload it first: client.upload_{name}(...)"
        )


def pregen(address: Address, id_: str) -> Steps[PregenScores]:
    return asking.gotten(address, PregenScores, f"{place(id_)}/pregen")


def csv(address: Address, id_: str) -> Steps[str]:
    """The captions with their scores, as CSV."""
    request = Request("GET", f"{place(id_)}/captions", headers={"Accept": "text/csv"})
    return (yield from retries.sent(address, request)).content.decode("utf-8")


def coco(address: Address, id_: str) -> Steps[list[dict[str, Any]]]:
    """The captions in the format of COCO's results files."""
    request = Request("GET", f"{place(id_)}/captions", params={"format": "coco"})
    response = yield from retries.sent(address, request)
    return answers.parsed(address.url, CocoResults, response).root


def tokens(address: Address, id_: str, image: str) -> Steps[Tokens]:
    return asking.gotten(address, Tokens, f"{place(id_)}/tokens/{segment(image)}")


def place(id_: str) -> str:
    return asking.of(Evaluation, id_)
