"""The client of the service: a method for each request."""
# ruff: noqa: A002  `id` is the contract's word

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel

from prescore.errors import InvalidArgument
from prescore.files import bundles, captions
from prescore.http import downloads, events, paging, polling, uploads
from prescore.http.polling import OnChange
from prescore.http.retries import PASSING
from prescore.http.transport import Request, Transport, segment
from prescore.http.uploads import Progress
from prescore.models import (
    Caption,
    Checkpoint,
    CocoResults,
    Comparison,
    Dataset,
    Evaluation,
    Event,
    Metric,
    PregenScores,
    Score,
    Scored,
    Standing,
    Tokens,
)

DEFAULT_URL = "http://127.0.0.1:8000"
PATIENCE_SECONDS = 30.0  # a service that restarts answers again within this
_JSON = {"Content-Type": "application/json"}
IN_FLIGHT = 409  # the first attempt, whose answer was lost, is still being answered

M = TypeVar("M", bound=BaseModel)


class Client:
    """Talks to a Prescore service.

        with prescore.Client() as client:
            digest = client.upload_checkpoint("epoch-08.safetensors")
            evaluation = client.submit("flickr8k/test", checkpoint=digest)
            print(client.wait(evaluation.id).scores["cider_d"].value)

    Defaults: `url` is PRESCORE_URL or http://127.0.0.1:8000, `key` is PRESCORE_KEY. While the
    service cannot be reached, or answers that it is busy, a request is repeated for at most
    `patience` seconds; no repetition does anything twice. Safe to share between threads.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, patience: float = PATIENCE_SECONDS
    ) -> None:
        url = os.environ.get("PRESCORE_URL") or DEFAULT_URL if url is None else url
        key = os.environ.get("PRESCORE_KEY") if key is None else key
        self._transport = Transport(url, key, patience)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    @property
    def url(self) -> str:
        return self._transport.url

    # Checkpoints

    def upload_checkpoint(self, path: str | Path, progress: Progress | None = None) -> str:
        """Send a file unless the service has it; returns its digest."""
        return uploads.store_checkpoint(self._transport, Path(path), progress)

    def has_checkpoint(self, digest: str) -> bool:
        place = _checkpoint(digest)
        return self._transport.persist(lambda: uploads.is_there(self._transport, place))

    def checkpoint(self, digest: str) -> Checkpoint:
        return self._get(Checkpoint, _checkpoint(digest))

    # Datasets

    def add_dataset(
        self, name: str, bundle: str | Path, progress: Progress | None = None
    ) -> Dataset:
        """Add a version, or find the one with the same bytes; a folder is sent as a tar."""
        body = bundles.body(Path(bundle))
        place = f"/v1/datasets/{segment(name)}"
        request = uploads.put(place, body, "application/x-tar", progress)
        return self._transport.parsed(Dataset, self._transport.send(request))

    def datasets(self) -> Iterator[Dataset]:
        return paging.items(self._transport, Dataset, "/v1/datasets")

    def dataset(self, name: str) -> Dataset:
        """A dataset by `name` (its latest version) or `name@version`."""
        return self._get(Dataset, f"/v1/datasets/{segment(name)}")

    def fetch_captions(self, name: str, path: str | Path) -> None:
        """Download the captions.jsonl of a dataset, `name` or `name@version`, to `path`."""
        request = Request(
            "GET", f"/v1/datasets/{segment(name)}", headers={"Accept": "application/x-ndjson"}
        )
        self._transport.persist(lambda: downloads.save(self._transport, request, Path(path)))

    # Evaluations

    def submit(
        self,
        dataset: str,
        *,
        checkpoint: str | None = None,
        captions: Iterable[Mapping[str, Any]] | None = None,
        pregen: Literal["all"] | Sequence[str] | None = None,
        postgen: Sequence[str] | None = None,
        precision: str | None = None,
        tokens: Mapping[str, Any] | None = None,
        tokenizer: str | None = None,
        decoding: Mapping[str, Any] | None = None,
        subset: bool | None = None,
        idf: str | None = None,
        bertscore: Mapping[str, Any] | None = None,
        gates: Sequence[str] | None = None,
        baseline: str | None = None,
        until: str | None = None,
        trust: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        deadline: int | None = None,
        wait: int | None = None,
        idempotency_key: str | None = None,
    ) -> Evaluation:
        """Start an evaluation of either a `checkpoint` (its digest) or `captions`.

        Each of `captions` is {"image" or "image_id", "caption"}. None means the service's default.
        With `wait`, the service answers when the first scores exist, or after so many seconds.
        However often the request is sent, one evaluation is started. Give an `idempotency_key`
        (such as a CI run's id) so that a second start of your program gets the same evaluation.
        """
        fields = {
            "checkpoint": checkpoint,
            "captions": _captions(captions),
            "dataset": dataset,
            "pregen": _names("pregen", pregen),
            "postgen": _names("postgen", postgen),
            "precision": precision,
            "tokens": tokens,
            "tokenizer": tokenizer,
            "decoding": decoding,
            "subset": subset,
            "idf": idf,
            "bertscore": bertscore,
            "gates": _names("gates", gates),
            "baseline": baseline,
            "until": until,
            "trust": _names("trust", trust),
            "labels": labels,
            "deadline": deadline,
        }
        if (checkpoint is None) == (captions is None):
            raise InvalidArgument("expected a checkpoint or captions, one of the two")
        request = _submission(fields, wait or 0, idempotency_key or uuid.uuid4().hex)
        statuses = PASSING | {IN_FLIGHT}
        return self._transport.parsed(Evaluation, self._transport.send(request, statuses=statuses))

    def evaluation(self, id: str) -> Evaluation:
        return self._get(Evaluation, _evaluation(id))

    def evaluations(
        self,
        *,
        dataset: str | None = None,
        status: str | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int | None = None,
    ) -> Iterator[Evaluation]:
        """The evaluations that match, fetched page by page during the iteration."""
        wanted = {"dataset": dataset, "status": status}
        wanted |= {f"label.{name}": value for name, value in (labels or {}).items()}
        wanted |= {"limit": None if page_size is None else str(page_size)}
        params = {name: value for name, value in wanted.items() if value is not None}
        return paging.items(self._transport, Evaluation, "/v1/evaluations", params)

    def cancel(self, id: str) -> Evaluation:
        """Stop an evaluation; one that has ended stays as it is."""
        response = self._transport.send(Request("POST", f"{_evaluation(id)}/cancel"))
        return self._transport.parsed(Evaluation, response)

    def wait(
        self,
        id: str,
        timeout: float | None = None,
        on_change: OnChange | None = None,
    ) -> Evaluation:
        """The evaluation once it succeeded, failed or was canceled; `TimedOut` after `timeout` s.

        `on_change` is called with the first state that is seen and with each changed state.
        """
        return polling.wait(self._transport, Evaluation, _evaluation(id), timeout, on_change)

    def events(self, id: str, last_event_id: str | None = None) -> Iterator[Event]:
        """An evaluation's events, each once, until its end; only those after `last_event_id`."""
        return events.listen(self._transport, f"{_evaluation(id)}/events", last_event_id)

    def pregen(self, id: str) -> dict[str, Score]:
        """All pre-gen scores of an evaluation, by name."""
        return self._get(PregenScores, f"{_evaluation(id)}/pregen").scores

    def captions(self, id: str) -> Iterator[Caption]:
        """Each image's caption with its own scores."""
        return paging.items(self._transport, Caption, f"{_evaluation(id)}/captions")

    def captions_csv(self, id: str) -> str:
        request = Request("GET", f"{_evaluation(id)}/captions", headers={"Accept": "text/csv"})
        return self._transport.send(request).content.decode("utf-8")

    def captions_coco(self, id: str) -> list[dict[str, Any]]:
        """An evaluation's captions in the format of COCO's results files."""
        request = Request("GET", f"{_evaluation(id)}/captions", params={"format": "coco"})
        return self._transport.parsed(CocoResults, self._transport.send(request)).root

    def tokens(self, id: str, image: str) -> Tokens:
        """The model's log-probability and rank of each word of an image's references; and what the
        evaluation's `tokens` asked for besides.
        """
        return self._get(Tokens, f"{_evaluation(id)}/tokens/{segment(image)}")

    def leaderboard(
        self,
        dataset: str,
        *,
        metric: str = "cider_d",
        split: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Iterator[Standing]:
        """A dataset's evaluations, the best first, fetched page by page during the iteration."""
        return self._board(Standing, dataset, "leaderboard", metric, split, labels)

    def history(
        self,
        dataset: str,
        *,
        metric: str = "cider_d",
        split: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Iterator[Scored]:
        """A dataset's evaluations with a metric's score, the latest first."""
        return self._board(Scored, dataset, "history", metric, split, labels)

    def compare(
        self,
        a: str,
        b: str,
        *,
        metrics: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Comparison:
        """Compare two evaluations of the same images; returns the comparison when it has ended.

        By default all metrics that both have. Raises `TimedOut` after `timeout` seconds.
        """
        fields = {"a": a, "b": b, "metrics": _names("metrics", metrics)}
        request = Request("POST", "/v1/comparisons", headers=_JSON, body=_body(fields))
        begun = self._transport.parsed(Comparison, self._transport.send(request))
        place = f"/v1/comparisons/{segment(begun.id)}"
        return polling.wait(self._transport, Comparison, place, timeout)

    def comparison(self, id: str) -> Comparison:
        return self._get(Comparison, f"/v1/comparisons/{segment(id)}")

    def _board(
        self,
        model: type[M],
        dataset: str,
        of: str,
        metric: str,
        split: str | None,
        labels: Mapping[str, str] | None,
    ) -> Iterator[M]:
        params = {"metric": metric, **({} if split is None else {"split": split})}
        params |= {f"label.{name}": value for name, value in (labels or {}).items()}
        return paging.items(self._transport, model, f"/v1/datasets/{segment(dataset)}/{of}", params)

    def metrics(self) -> list[Metric]:
        """All metrics that the service knows."""
        return list(paging.items(self._transport, Metric, "/v1/metrics"))

    def _get(self, model: type[M], path: str) -> M:
        return self._transport.parsed(model, self._transport.send(Request("GET", path)))


def _evaluation(id_: str) -> str:
    return f"/v1/evaluations/{segment(id_)}"


def _checkpoint(digest: str) -> str:
    return f"/v1/checkpoints/{segment(digest)}"


def _captions(given: Iterable[Mapping[str, Any]] | None) -> list[dict[str, str]] | None:
    return None if given is None else captions.normalized(given)


def _names(field: str, names: str | Sequence[str] | None) -> str | list[str] | None:
    if isinstance(names, str) and names != "all":  # a str is a Sequence[str] too
        raise InvalidArgument(f"{field}: expected a list of names, found the text {names!r:.60}")
    return names if names is None or isinstance(names, str) else list(names)


def _submission(fields: Mapping[str, Any], wait: int, key: str) -> Request:
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidArgument("an idempotency key has 1 to 255 visible ASCII characters")
    quoted = key.replace("\\", r"\\").replace('"', r"\"")
    headers = {**_JSON, "Idempotency-Key": f'"{quoted}"'}
    if wait:
        headers["Prefer"] = f"wait={wait}"
    return Request("POST", "/v1/evaluations", headers=headers, body=_body(fields), hold=wait)


def _body(fields: Mapping[str, Any]) -> bytes:
    """The fields as JSON, without those that are None."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        # In ASCII: a lone surrogate in a caption reaches the service, which says where it stands.
        return json.dumps(given, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the request cannot be written as JSON: {error}") from None
