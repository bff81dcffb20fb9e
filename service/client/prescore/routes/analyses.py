"""Requests that begin a comparison, a study, probes or a training."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from prescore.http import downloads, paging, retries
from prescore.http.addresses import Address
from prescore.http.steps import Request, Steps
from prescore.models import Comparison, Learned, Probes, Run, StudyRun
from prescore.names import check_known
from prescore.routes import asking

R = TypeVar("R", bound=Run)


class ProbesAsked(TypedDict, total=False):
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


class TrainingAsked(TypedDict, total=False):
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


def compared(
    address: Address, a: str, b: str, metrics: Sequence[str] | None, timeout: float | None
) -> Steps[Comparison]:
    fields = {"a": a, "b": b, "metrics": asking.names("metrics", metrics)}
    return asking.computed(address, Comparison, fields, timeout)


def studied(
    address: Address,
    dataset: str,
    fields: Mapping[str, Any],
    timeout: float | None,
    on_change: Callable[[StudyRun], None] | None,
) -> Steps[StudyRun]:
    return asking.computed(address, StudyRun, {"dataset": dataset, **fields}, timeout, on_change)


def probed(
    address: Address,
    dataset: str,
    asked: ProbesAsked,
    timeout: float | None,
    on_change: Callable[[Probes], None] | None,
) -> Steps[Probes]:
    check_known("argument", asked, ProbesAsked.__annotations__)
    fields: dict[str, Any] = {"dataset": dataset, **asked}
    for name in ("probes", "metrics"):
        fields[name] = asking.names(name, fields.get(name))
    fields["captions"] = asking.listed(fields.get("captions"))
    return asking.computed(address, Probes, fields, timeout, on_change)


def trained(
    address: Address,
    dataset: str,
    captioners: Sequence[Mapping[str, Any]] | None,
    asked: TrainingAsked,
    timeout: float | None,
    on_change: Callable[[Learned], None] | None,
) -> Steps[Learned]:
    check_known("argument", asked, TrainingAsked.__annotations__)
    fields: dict[str, Any] = {"dataset": dataset, "captioners": _captioners(captioners), **asked}
    told = asked.get("judgements")
    fields["judgements"] = None if told is None else judgements(told)
    for name in ("features", "further"):
        fields[name] = asking.names(name, fields.get(name))
    return asking.computed(address, Learned, fields, timeout, on_change)


def _captioners(given: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    if given is None:
        return None
    listed = [{**each, "captions": asking.listed(each.get("captions"))} for each in given]
    return [{name: v for name, v in each.items() if v is not None} for each in listed]


_RATED = ("image", "candidate", "references", "ratings")
_PAIR = ("image", "references", "a", "b", "preferred")


def judgements(given: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Lines of judgements as a request has them: rated captions, and pairs; other fields of lines
    are for people.
    """
    found: dict[str, list[dict[str, Any]]] = {"rated": [], "pairs": []}
    for line in given:
        if "rating" in line:
            line = {**line, "ratings": [line["rating"]]}  # noqa: PLW2901  the same line
        kind, names = ("pairs", _PAIR) if "preferred" in line else ("rated", _RATED)
        found[kind].append({name: line[name] for name in names if name in line})
    return found


def listed(
    address: Address,
    model: type[R],
    *,
    dataset: str | None,
    status: str | None,
    labels: Mapping[str, str] | None = None,
    page_size: int | None = None,
) -> Steps[None]:
    """Pages of runs of a kind, the latest first."""
    params = asking.given(dataset=dataset, status=status, limit=page_size)
    return paging.pages(address, model, model.PLACE, params | asking.labelled(labels))


def fetched_model(address: Address, id_: str, path: Path) -> Steps[None]:
    request = Request("GET", f"{asking.of(Learned, id_)}/model")
    return retries.persistently(address, lambda: downloads.saved(request, path))
