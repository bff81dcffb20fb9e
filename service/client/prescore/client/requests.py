"""Requests that the methods of a client share: read, list, submit once, compute, change, delete."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel

from prescore.client.lists import Listing
from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.http.answers import REPLAYED, Reply
from prescore.http.polling import await_end
from prescore.http.retries import IN_FLIGHT, PASSING
from prescore.http.transport import HttpRequest, Transport, quote_segment
from prescore.models import Answer, Run
from prescore.names import check_known

A = TypeVar("A", bound=Answer)
M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Run)
Parameter = str | float | None


class Calls:
    """Calls to the service over a transport; subclasses have the methods of an area."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, model: type[M], path: str, **params: Parameter) -> M:
        return self._transport.get(model, path, build_query(params))

    def _list(self, model: type[A], name: str, path: str, **params: Parameter) -> Listing[A]:
        return Listing(self._transport, name, model, path, build_query(params))

    def _delete(self, path: str) -> None:
        self._transport.send(HttpRequest("DELETE", path))

    def _change(
        self,
        model: type[M],
        method: str,
        path: str,
        fields: Mapping[str, Any] | None = None,
        *,
        hold: float = 0.0,
        once: bool = False,
    ) -> M:
        """Repeated after failures, unless only `once`: a repetition might do it twice."""
        request = build_json_request(method, path, fields, hold=hold)
        send = self._transport.send_once if once else self._transport.send
        return send(request).parsed(model)

    def _submit(
        self, model: type[R], fields: Mapping[str, Any], *, wait: int = 0, key: str | None = None
    ) -> R:
        """Begin a run once, however often the request has to be sent."""
        headers = {"Idempotency-Key": _quote_key(key or uuid.uuid4().hex)}
        if wait:
            headers["Prefer"] = f"wait={wait}"
        request = build_json_request("POST", model.PLACE, drop_none(fields), headers, wait)
        attempts = 0

        def attempt() -> Reply:
            nonlocal attempts
            attempts += 1
            return self._transport.send_once(request)

        reply = self._transport.repeat(attempt, statuses=PASSING | {IN_FLIGHT})
        if attempts > 1:  # the first may have begun the run, and its answer was lost
            reply.headers.pop(REPLAYED, None)
        return reply.parsed(model)

    def _compute(
        self,
        model: type[R],
        fields: Mapping[str, Any],
        timeout: float | None,
        on_change: Callable[[R], None] | None = None,
    ) -> R:
        """Begin a run and wait for its end."""
        run = self._submit(model, fields)
        return await_end(self._transport, model, run.place(), timeout, on_change)


def build_json_request(
    method: str,
    path: str,
    fields: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    hold: float = 0.0,
) -> HttpRequest:
    if fields is None:
        return HttpRequest(method, path, headers=headers or {}, hold=hold)
    headers = {"Content-Type": "application/json", **(headers or {})}
    return HttpRequest(method, path, headers=headers, body=encode_json(fields), hold=hold)


def build_run_path(model: type[Run], id_: str) -> str:
    return f"{model.PLACE}/{quote_segment(id_)}"


def build_label_params(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {f"label.{name}": value for name, value in (labels or {}).items()}


def build_query(params: Mapping[str, Parameter]) -> dict[str, str]:
    """Parameters of a query, without those that are None."""
    return {name: str(value) for name, value in params.items() if value is not None}


def _quote_key(key: str) -> str:
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidArgument("an idempotency key has 1 to 255 visible ASCII characters")
    escaped = key.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


Captions = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]


class EvaluationChoices(TypedDict, total=False):
    """The choices of an evaluation; the service has defaults for those that are left out."""

    base: str | None
    pregen: Literal["all"] | Sequence[str] | None
    postgen: Sequence[str] | None
    units: str | None
    precision: str | None
    prompt: str | None
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


class Submission(EvaluationChoices, total=False):
    """Arguments of `submit`: `checkpoint` (a digest), or `captions` and `columns` (a digest) or one
    of them; and how it is scored.
    """

    checkpoint: str | None
    columns: str | None
    captions: Captions | None
    subset: bool | None
    labels: Mapping[str, str] | None
    wait: int | None
    idempotency_key: str | None


class ProbeChoices(TypedDict, total=False):
    """The choices of probes; the service has defaults for those that are left out.

    `evaluation` or `captions`: a captioner's captions, to compare with people's.
    """

    probes: Sequence[str] | None
    metrics: Sequence[str] | None
    tokenizer: str | None
    evaluation: str | None
    captions: Sequence[Mapping[str, Any]] | None
    options: Mapping[str, Any] | None
    deadline: int | None


class TrainingChoices(TypedDict, total=False):
    """The choices of a training; the service has defaults for those that are left out.

    `objective`: people, contrast or judged; `further`: splits whose references count too;
    `judgements`: rated captions and pairs, as `prescore judge` reads them from lines.
    """

    objective: str | None
    further: Sequence[str] | None
    judgements: Sequence[Mapping[str, Any]] | None
    stopping: Sequence[Mapping[str, Any]] | None
    leave_out_rated: bool | None
    features: Sequence[str] | None
    learning_rate: float | None
    beta: float | None
    epochs: int | None
    seed: int | None
    tokenizer: str | None
    deadline: int | None


def build_evaluation_fields(dataset: str, given: Submission) -> dict[str, Any]:
    """Fields of a request for an evaluation."""
    check_known("argument", given, Submission.__annotations__)
    fields = _build_fields(dataset, given, lists=("pregen", "postgen", "gates", "trust"))
    for name in ("checkpoint", "columns"):
        _check_digest(name, fields.get(name))
    others = fields["captions"] is not None or fields.get("columns") is not None
    if (fields.get("checkpoint") is not None) == others:
        raise InvalidArgument("expected a checkpoint or captions, one of the two; or columns")
    return fields


def build_probe_fields(dataset: str, given: ProbeChoices) -> dict[str, Any]:
    """Fields of a request for probes."""
    check_known("argument", given, ProbeChoices.__annotations__)
    return _build_fields(dataset, given, lists=("probes", "metrics"))


def build_training_fields(
    dataset: str, captioners: Sequence[Mapping[str, Any]] | None, given: TrainingChoices
) -> dict[str, Any]:
    """Fields of a request for a training of a learned metric."""
    check_known("argument", given, TrainingChoices.__annotations__)
    fields = _build_fields(dataset, given, lists=("features", "further"))
    if captioners is not None:
        fields["captioners"] = [
            drop_none({**each, "captions": _list_captions(each.get("captions"))})
            for each in captioners
        ]
    if fields.get("judgements") is not None:
        fields["judgements"] = split_judgements(fields["judgements"])
    return fields


_RATED = ("image", "candidate", "references", "ratings")
_PAIR = ("image", "references", "a", "b", "preferred")


def split_judgements(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Lines of judgements as rated captions and pairs; other fields of lines are for people."""
    fields: dict[str, list[dict[str, Any]]] = {"rated": [], "pairs": []}
    for line in lines:
        if "rating" in line:
            line = {**line, "ratings": [line["rating"]]}  # noqa: PLW2901  the same line
        kind, names = ("pairs", _PAIR) if "preferred" in line else ("rated", _RATED)
        fields[kind].append({name: line[name] for name in names if name in line})
    return fields


def check_names(field: str, given: str | Sequence[str] | None) -> str | list[str] | None:
    """A list of names, or the text `all`."""
    if isinstance(given, str) and given != "all":  # a str is a Sequence[str] too
        raise InvalidArgument(f"{field}: expected a list of names, found the text {given!r:.60}")
    return given if given is None or isinstance(given, str) else list(given)


def drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def encode_json(fields: Mapping[str, Any]) -> bytes:
    try:
        # In ASCII: a lone surrogate in a caption reaches the service, which says where it stands.
        return json.dumps(fields, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the request cannot be written as JSON: {error}") from None


def _build_fields(dataset: str, given: Mapping[str, Any], lists: Sequence[str]) -> dict[str, Any]:
    fields = {"dataset": dataset, **given, "captions": _list_captions(given.get("captions"))}
    return fields | {name: check_names(name, given.get(name)) for name in lists}


def _list_captions(given: Captions | None) -> list[dict[str, str]] | None:
    """Captions in the form that the service takes."""
    return None if given is None else captions.normalize_captions(given)


def _check_digest(name: str, given: object) -> None:
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".safetensors")):
        raise InvalidArgument(
            f"{name}: expected a digest, sha256:..., found the file {str(given)!r:.200}: "
            f"upload it first: client.upload_{name}(...)"
        )
