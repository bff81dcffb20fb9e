"""Bodies of requests: what may be asked for, and how arguments become fields of JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.names import check_known

Captions = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]


class EvaluationChoices(TypedDict, total=False):
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
    """What is probed; what is left out is as the service does by default.

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
    """How a learned metric is trained; what is left out is as the service does by default.

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


def evaluation_fields(dataset: str, given: Submission) -> dict[str, Any]:
    """Fields of a request for an evaluation."""
    check_known("argument", given, Submission.__annotations__)
    fields = _fields(dataset, given, lists=("pregen", "postgen", "gates", "trust"))
    for name in ("checkpoint", "columns"):
        _check_digest(name, fields.get(name))
    others = fields["captions"] is not None or fields.get("columns") is not None
    if (fields.get("checkpoint") is not None) == others:
        raise InvalidArgument("expected a checkpoint or captions, one of the two; or columns")
    return fields


def probe_fields(dataset: str, given: ProbeChoices) -> dict[str, Any]:
    """Fields of a request for probes."""
    check_known("argument", given, ProbeChoices.__annotations__)
    return _fields(dataset, given, lists=("probes", "metrics"))


def training_fields(
    dataset: str, captioners: Sequence[Mapping[str, Any]] | None, given: TrainingChoices
) -> dict[str, Any]:
    """Fields of a request for a training of a learned metric."""
    check_known("argument", given, TrainingChoices.__annotations__)
    fields = _fields(dataset, given, lists=("features", "further"))
    if captioners is not None:
        fields["captioners"] = [
            without_none({**each, "captions": _listed(each.get("captions"))}) for each in captioners
        ]
    if fields.get("judgements") is not None:
        fields["judgements"] = judgement_fields(fields["judgements"])
    return fields


_RATED = ("image", "candidate", "references", "ratings")
_PAIR = ("image", "references", "a", "b", "preferred")


def judgement_fields(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Lines of judgements as rated captions and pairs; other fields of lines are for people."""
    fields: dict[str, list[dict[str, Any]]] = {"rated": [], "pairs": []}
    for line in lines:
        if "rating" in line:
            line = {**line, "ratings": [line["rating"]]}  # noqa: PLW2901  the same line
        kind, names = ("pairs", _PAIR) if "preferred" in line else ("rated", _RATED)
        fields[kind].append({name: line[name] for name in names if name in line})
    return fields


def checked_names(field: str, given: str | Sequence[str] | None) -> str | list[str] | None:
    """A list of names, or the text `all`."""
    if isinstance(given, str) and given != "all":  # a str is a Sequence[str] too
        raise InvalidArgument(f"{field}: expected a list of names, found the text {given!r:.60}")
    return given if given is None or isinstance(given, str) else list(given)


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def json_body(fields: Mapping[str, Any]) -> bytes:
    try:
        # In ASCII: a lone surrogate in a caption reaches the service, which says where it stands.
        return json.dumps(fields, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the request cannot be written as JSON: {error}") from None


def _fields(dataset: str, given: Mapping[str, Any], lists: Sequence[str]) -> dict[str, Any]:
    fields = {"dataset": dataset, **given, "captions": _listed(given.get("captions"))}
    return fields | {name: checked_names(name, given.get(name)) for name in lists}


def _listed(given: Captions | None) -> list[dict[str, str]] | None:
    """Captions in the form that the service takes."""
    return None if given is None else captions.normalized(given)


def _check_digest(name: str, given: object) -> None:
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".safetensors")):
        raise InvalidArgument(
            f"{name}: expected a digest, sha256:..., found the file {str(given)!r:.200}: "
            f"upload it first: client.upload_{name}(...)"
        )
