"""The client for programs without asyncio."""
# ruff: noqa: A002  `id` is the contract's word

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from prescore.client.analyses import Analyses
from prescore.client.connecting import PATIENCE_SECONDS, address
from prescore.client.here import HERE, run_service
from prescore.client.listing import Listing, Scores
from prescore.client.outgoing import Outgoing
from prescore.client.overview import Overview
from prescore.http import events, paging, polling, uploads
from prescore.http.addresses import Address
from prescore.http.polling import OnChange
from prescore.http.transport import Transport
from prescore.http.uploads import Progress
from prescore.models import (
    Caption,
    Change,
    Checkpoint,
    Columns,
    Dataset,
    Evaluation,
    Event,
    Metric,
    Tokens,
)
from prescore.routes import analyses, asking, evaluations, life, overview, stored
from prescore.routes.evaluations import Submission


class Client(Analyses, Outgoing, Overview):
    """Talks to a Prescore service.

        with prescore.Client() as client:
            digest = client.upload_checkpoint("epoch-08.safetensors")
            evaluation = client.submit("flickr8k/test", checkpoint=digest)
            print(client.wait(evaluation.id).scores["cider_d"].value)

    Defaults: `url` is PRESCORE_URL or http://127.0.0.1:8000, `key` is PRESCORE_KEY. While the
    service cannot be reached, or answers that it is busy, a request is repeated for at most
    `patience` seconds; no repetition does anything twice. Safe to share between threads.

    `here=True` runs the service in this process, with what it computed before in PRESCORE_HOME, or
    in the folder that `here` names. It needs the distribution `prescore` with its extras.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        here: bool | str | Path = False,
    ) -> None:
        self.is_here = bool(here)
        self._service = ExitStack()
        if here:
            home = None if here is True else Path(here)
            socket = self._service.enter_context(run_service(home))
            self._address = Address(HERE, patience, {}, socket)
        else:
            self._address = address(url, key, patience)
        self._transport = Transport(self._address)

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
        self._service.close()

    @property
    def url(self) -> str:
        return self._address.url

    # Checkpoints

    def upload_checkpoint(self, path: str | Path, progress: Progress | None = None) -> str:
        """Send a file unless the service has it; returns its digest."""
        return self._run(uploads.stored_checkpoint(self._address, Path(path), progress))

    def has_checkpoint(self, digest: str) -> bool:
        return self._run(stored.has(self._address, stored.checkpoint(digest)))

    def checkpoint(self, digest: str) -> Checkpoint:
        return self._run(asking.gotten(self._address, Checkpoint, stored.checkpoint(digest)))

    # Columns

    def upload_columns(self, path: str | Path, progress: Progress | None = None) -> str:
        """Send what `prescore.Recorder` wrote, unless the service has it; returns its digest."""
        return self._run(uploads.stored_columns(self._address, Path(path), progress))

    def has_columns(self, digest: str) -> bool:
        return self._run(stored.has(self._address, stored.columns(digest)))

    def columns(self, digest: str) -> Columns:
        """What stored columns are of."""
        return self._run(asking.gotten(self._address, Columns, stored.columns(digest)))

    # Datasets

    def add_dataset(
        self, name: str, bundle: str | Path, progress: Progress | None = None
    ) -> Dataset:
        """Add a version, or find the one with the same content; a folder is sent as a tar.

        Nothing is sent if one of the latest versions has the same content.
        """
        return self._run(stored.added_dataset(self._address, name, Path(bundle), progress))

    def add_pictures(
        self, name: str, folder: str | Path, progress: Progress | None = None
    ) -> Dataset:
        """Add a version with the latest one's captions and the pictures in a folder, each under its
        image's name; or find the one that has them. Features stay with the versions that have them.
        """
        return self._run(stored.added_pictures(self._address, name, Path(folder), progress))

    def show_pictures(self, name: str, *, shown: bool = True) -> Dataset:
        """Let everybody who reaches the service look at a version's pictures, or nobody any more:
        of the latest one, or of `name@version`.
        """
        return self._run(stored.changed(self._address, name, {"pictures_shown": shown}))

    def image(self, name: str, image: str, size: int = 320) -> bytes:
        """An image's picture as WebP, whose longer side has at most `size` pixels (320 or 960). The
        first time that somebody asks it is made, which takes some seconds.
        """
        return self._run(stored.picture(self._address, name, image, size))

    def datasets(self) -> Listing[Dataset]:
        steps = paging.pages(self._address, Dataset, "/v1/datasets")
        return Listing(self._transport, "datasets", steps)

    def dataset(self, name: str) -> Dataset:
        """A dataset by `name` (its latest version) or `name@version`."""
        return self._run(asking.gotten(self._address, Dataset, stored.dataset(name)))

    def fetch_captions(self, name: str, path: str | Path) -> None:
        """Download the captions.jsonl of a dataset, `name` or `name@version`, to `path`. It is kept
        only if it has the digest that the service tells.
        """
        self._run(stored.fetched_captions(self._address, name, Path(path)))

    # Evaluations

    def submit(self, dataset: str, **asked: Unpack[Submission]) -> Evaluation:
        """Start an evaluation of a `checkpoint` (its digest), of `captions`, or of `columns` (their
        digest) with captions or without.

            client.submit("flickr8k/test", checkpoint=digest, labels={"run": "7"})
            client.submit("flickr8k/test", captions=captions, postgen=["cider_d", "spice"])

        Each of `captions` is {"image" or "image_id", "caption"}; or they are {image: caption}, or a
        file's path. Also: `pregen` ("all" or names), `units` (of columns: "words" or "pieces"),
        `postgen`, `precision`, `tokens`, `tokenizer`, `decoding`, `subset`, `idf`, `bertscore`,
        `gates`, `baseline`, `if_no_baseline`, `until`, `trust`, `labels`, `deadline`; None means
        the service's default. With `wait`, the service answers when the first scores exist, or
        after so many seconds. However often the request is sent, one evaluation is started. Give an
        `idempotency_key` (such as a CI run's id) so that a second start of your program gets the
        same evaluation.
        """
        return self._run(evaluations.begun(self._address, dataset, asked))

    def evaluation(self, id: str) -> Evaluation:
        return self._run(asking.gotten(self._address, Evaluation, evaluations.place(id)))

    def evaluations(
        self,
        *,
        dataset: str | None = None,
        status: str | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int | None = None,
    ) -> Listing[Evaluation]:
        """The evaluations that match, fetched page by page during the iteration."""
        return Listing(
            self._transport,
            "evaluations",
            analyses.listed(
                self._address,
                Evaluation,
                dataset=dataset,
                status=status,
                labels=labels,
                page_size=page_size,
            ),
        )

    def cancel(self, id: str) -> Evaluation:
        """Stop an evaluation; one that has ended stays as it is."""
        return self._run(asking.canceled(self._address, Evaluation, id))

    def change(
        self, id: str, *, labels: Mapping[str, str | None] | None = None, note: str | None = None
    ) -> Evaluation:
        """Set labels of an evaluation, also of one that has ended: None as a value removes one, the
        others stay. `note`: what people should know about it; an empty one is removed.
        """
        return self._run(life.changed(self._address, id, labels, note))

    def delete_evaluation(self, id: str) -> None:
        """Delete an evaluation that has ended and that nothing unfinished needs."""
        self._run(life.deleted(self._address, evaluations.place(id)))

    def delete_checkpoint(self, digest: str) -> None:
        """Delete a checkpoint; the scores of evaluations that have ended stay."""
        self._run(life.deleted(self._address, stored.checkpoint(digest)))

    def delete_columns(self, digest: str) -> None:
        """Delete columns; the scores of evaluations that have ended stay."""
        self._run(life.deleted(self._address, stored.columns(digest)))

    def delete_dataset(self, name: str) -> None:
        """Delete `name@version`, or all versions of `name`, on which there are no runs."""
        self._run(life.deleted(self._address, stored.dataset(name)))

    def audit(
        self, *, action: str | None = None, of: str | None = None, page_size: int | None = None
    ) -> Listing[Change]:
        """Who changed what, the latest first; `of`: a run, an upload or `name@version`."""
        steps = life.audit(self._address, action, of, page_size)
        return Listing(self._transport, "changes", steps)

    def wait(
        self,
        id: str,
        timeout: float | None = None,
        on_change: OnChange | None = None,
    ) -> Evaluation:
        """The evaluation once it succeeded, failed or was canceled; `TimedOut` after `timeout` s.

        `on_change` is called with the first state that is seen and with each changed state.
        """
        place = evaluations.place(id)
        return self._run(polling.ended(self._address, Evaluation, place, timeout, on_change))

    def events(self, id: str, last_event_id: str | None = None) -> Iterator[Event]:
        """An evaluation's events, each once, until its end; only those after `last_event_id`."""
        place = f"{evaluations.place(id)}/events"
        return self._transport.iterate(events.heard(self._address, place, last_event_id))

    def pregen(self, id: str) -> Scores:
        """All pre-gen scores of an evaluation, by name."""
        return Scores(self._run(evaluations.pregen(self._address, id)).scores)

    def captions(
        self,
        id: str,
        *,
        sort: str | None = None,
        search: str | None = None,
        image: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        page_size: int | None = None,
    ) -> Listing[Caption]:
        """Each image's caption with its own scores, in the dataset's order.

        `sort`: a metric, after a `-` the highest first; `at_least` and `at_most` are bounds of its
        scores. `search`: only captions and names of images that contain this text.
        """
        texts, bounds = (sort, search, image), (at_least, at_most)
        steps = overview.captions(self._address, id, texts, bounds, page_size)
        return Listing(self._transport, f"captions of {id}", steps)

    def captions_csv(self, id: str) -> str:
        return self._run(evaluations.csv(self._address, id))

    def captions_coco(self, id: str) -> list[dict[str, Any]]:
        """An evaluation's captions in the format of COCO's results files."""
        return self._run(evaluations.coco(self._address, id))

    def tokens(self, id: str, image: str) -> Tokens:
        """The model's log-probability and rank of each word of an image's references; and what the
        evaluation's `tokens` asked for besides.
        """
        return self._run(evaluations.tokens(self._address, id, image))

    def metrics(self) -> list[Metric]:
        """All metrics that the service knows."""
        steps = paging.pages(self._address, Metric, "/v1/metrics")
        return list(Listing(self._transport, "metrics", steps))
