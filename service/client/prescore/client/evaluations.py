"""Calls about evaluations: submit, wait, change, delete, and read what they have."""
# ruff: noqa: A002  `id` is the contract's word

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from prescore.client.lists import Listing, Scores
from prescore.client.requests import (
    Calls,
    Submission,
    build_evaluation_fields,
    build_label_params,
    build_run_path,
    check_names,
)
from prescore.errors import InvalidArgument
from prescore.files.bodies import file_body
from prescore.http.events import hear_events
from prescore.http.polling import OnChange, await_end
from prescore.http.transport import HttpRequest, quote_segment
from prescore.models import (
    Caption,
    CaptionDrops,
    CaptionInspection,
    CocoResults,
    Evaluation,
    Event,
    Metric,
    PregenScores,
    Tokens,
)

CSV_BYTES = 64 << 20


class EvaluationCalls(Calls):
    def submit(self, dataset: str, **choices: Unpack[Submission]) -> Evaluation:
        """Start an evaluation of a `checkpoint` (its digest), of `captions`, or of `columns` (their
        digest) with captions or without.

            client.submit("flickr8k/test", checkpoint=digest, labels={"run": "7"})
            client.submit("flickr8k/test", captions=captions, postgen=["cider_d", "spice"])

        Each of `captions` is {"image" or "image_id", "caption"}; or they are {image: caption}, or a
        file's path. Also: `base` (of an adapter), `pregen` ("all" or names), `units` (of columns:
        "words" or "pieces"), `postgen`, `precision`, `prompt`, `tokens`, `tokenizer`, `decoding`,
        `subset`, `idf`, `bertscore`, `gates`, `baseline`, `if_no_baseline`, `until`, `trust`,
        `labels`, `deadline`; None means the service's default. With `wait`, the service answers
        when the first scores exist, or after so many seconds. However often the request is sent,
        one evaluation is started. Give an `idempotency_key` (such as a CI run's id) so that a
        second start of your program gets the same evaluation.
        """
        fields = build_evaluation_fields(dataset, choices)
        wait, key = fields.pop("wait", None), fields.pop("idempotency_key", None)
        return self._submit(Evaluation, fields, wait=wait or 0, key=key)

    def evaluation(self, id: str) -> Evaluation:
        return self._get(Evaluation, build_run_path(Evaluation, id))

    def evaluations(
        self,
        *,
        dataset: str | None = None,
        status: str | None = None,
        labels: Mapping[str, str] | None = None,
        metrics: Sequence[str] | None = None,
        page_size: int | None = None,
    ) -> Listing[Evaluation]:
        """The evaluations that match, fetched page by page during the iteration. `metrics`: they
        have the scores of these alone (20 at most), which makes long lists small.
        """
        params = {
            "dataset": dataset,
            "status": status,
            "metrics": _join_names("metrics", metrics),
            "limit": page_size,
            **build_label_params(labels),
        }
        return self._list(Evaluation, "evaluations", Evaluation.PLACE, **params)

    def wait(
        self, id: str, timeout: float | None = None, on_change: OnChange | None = None
    ) -> Evaluation:
        """The evaluation once it succeeded, failed or was canceled; `TimedOut` after `timeout` s.

        `on_change` is called with the first state that is seen and with each changed state.
        """
        path = build_run_path(Evaluation, id)
        return await_end(self._transport, Evaluation, path, timeout, on_change)

    def events(self, id: str, last_event_id: str | None = None) -> Generator[Event, None, None]:
        """An evaluation's events, each once, until its end; only those after `last_event_id`."""
        path = f"{build_run_path(Evaluation, id)}/events"
        return hear_events(self._transport, path, last_event_id)

    def cancel(self, id: str) -> Evaluation:
        """Stop an evaluation; one that has ended stays as it is."""
        return self._change(Evaluation, "POST", f"{build_run_path(Evaluation, id)}/cancel")

    def change(
        self, id: str, *, labels: Mapping[str, str | None] | None = None, note: str | None = None
    ) -> Evaluation:
        """Set labels of an evaluation, also of one that has ended: None as a value removes one, the
        others stay. `note`: what people should know about it; an empty one is removed.
        """
        fields: dict[str, object] = {} if labels is None else {"labels": dict(labels)}
        if note is not None:
            fields["note"] = note or None
        if not fields:
            raise InvalidArgument("expected labels or a note, found neither")
        return self._change(Evaluation, "PATCH", build_run_path(Evaluation, id), fields)

    def delete_evaluation(self, id: str) -> None:
        """Delete an evaluation that has ended and that nothing unfinished needs."""
        self._delete(build_run_path(Evaluation, id))

    def pregen(self, id: str) -> Scores:
        """All pre-gen scores of an evaluation, by name."""
        return Scores(self._get(PregenScores, f"{build_run_path(Evaluation, id)}/pregen").scores)

    def captions(
        self,
        id: str,
        *,
        sort: str | None = None,
        search: str | None = None,
        image: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        invented: str | None = None,
        missed: str | None = None,
        page_size: int | None = None,
    ) -> Listing[Caption]:
        """Each image's caption with its own scores, in the dataset's order.

        `sort`: a metric, after a `-` the highest first; `at_least` and `at_most` are bounds of its
        scores. `search`: only captions and names of images that contain this text. `invented`: only
        captions that have this word, which no reference of their image has; `missed`: only those
        that lack this word of their nearest reference.
        """
        return self._list(
            Caption,
            f"captions of {id}",
            _build_captions_path(id),
            sort=sort,
            search=search,
            image=image,
            at_least=at_least,
            at_most=at_most,
            invented=invented,
            missed=missed,
            limit=page_size,
        )

    def captions_csv(self, id: str) -> str:
        """An evaluation's captions with their scores, as CSV."""
        request = HttpRequest("GET", _build_captions_path(id), headers={"Accept": "text/csv"})
        return self._transport.send(request, most=CSV_BYTES).content.decode("utf-8")

    def captions_coco(self, id: str) -> list[dict[str, Any]]:
        """An evaluation's captions in the format of COCO's results files."""
        return self._get(CocoResults, _build_captions_path(id), format="coco").root

    def drops(self, id: str) -> CaptionDrops:
        """The up to three images that fell most against the baseline of an evaluation's gates."""
        return self._get(CaptionDrops, f"{build_run_path(Evaluation, id)}/drops")

    def tokens(self, id: str, image: str) -> Tokens:
        """The model's log-probability and rank of each word of an image's references; and what the
        evaluation's `tokens` asked for besides.
        """
        return self._get(Tokens, f"{build_run_path(Evaluation, id)}/tokens/{quote_segment(image)}")

    def inspect_captions(self, path: str | Path, dataset: str) -> CaptionInspection:
        """The captions in a file, and how they fit a split, before they are submitted: images
        without a caption, unknown names, warnings. The file may have 32 MiB.
        """
        request = HttpRequest(
            "POST",
            "/v1/inspections",
            params={"dataset": dataset, "file": Path(path).name},
            headers={"Content-Type": "application/octet-stream"},
            body=file_body(Path(path)).chunks,
        )
        return self._transport.send(request, most=CSV_BYTES).parsed(CaptionInspection)

    def metrics(self, names: Sequence[str] | None = None) -> list[Metric]:
        """All metrics that the service knows; or those of `names`, 50 at most."""
        return list(self._list(Metric, "metrics", "/v1/metrics", names=_join_names("names", names)))


def _join_names(field: str, names: Sequence[str] | None) -> str | None:
    return None if names is None else ",".join(check_names(field, names) or ())


def _build_captions_path(id_: str) -> str:
    return f"{build_run_path(Evaluation, id_)}/captions"
