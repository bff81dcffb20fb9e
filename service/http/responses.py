"""Responses: CSV, streams that are made while they are sent, and caches of answers as bytes."""

import asyncio
import csv
import io
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from fastapi import Response
from fastapi.responses import StreamingResponse

from prescore import plain_text
from prescore.models.runs import Run
from service.http.loop_limits import LoopLimit
from service.runs import run_store

CSV_TYPE = "text/csv"
CSV_ADVICE = f"for CSV send the header `Accept: {CSV_TYPE}`"


def wants_csv(accept: str | None) -> bool:
    return accept is not None and CSV_TYPE in accept


def answer_csv(rows: Iterable[Sequence[object]]) -> Response:
    """Rows as a CSV answer, in which no text is a formula; the first has the columns' names."""
    return Response(b"".join(_csv_lines(rows)), media_type=CSV_TYPE)


def stream_csv(rows: Iterable[Sequence[object]]) -> Response:
    """Many rows, which are made while they are sent."""
    return StreamingResponse(stream_paced(_csv_lines(rows)), media_type=CSV_TYPE)


def _csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([plain_text.cell(value) for value in row])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


_CHUNK = 1 << 17  # bytes that are made in one go
_AT_ONCE = LoopLimit(2)


async def stream_paced(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        async with _AT_ONCE:
            chunk = await asyncio.to_thread(_make_chunk, pieces)
        if not chunk:
            return
        yield chunk


def _make_chunk(pieces: Iterator[bytes]) -> bytes:
    made = bytearray()
    for piece in pieces:
        made += piece
        if len(made) >= _CHUNK:
            break
    return bytes(made)


def stream_events(events: AsyncIterator[str]) -> StreamingResponse:
    """Server-sent events, which nothing on their way keeps."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


Metrics = frozenset[str] | None  # that an answer is narrowed to; None: it has all
_Narrowed = tuple[str, Metrics]  # a run's id, and the metrics
BuildAnswer = Callable[[], tuple[Run, int]]
_MOST_CACHED = 1_000  # runs; about 3 KB each
_MOST_LISTED = 2_000


@dataclass(frozen=True)
class CachedAnswer:
    version: int
    over: bool
    text: bytes


class AnswerCache:
    """The answer of the last version of each run that was polled."""

    def __init__(self) -> None:
        self._answers: OrderedDict[_Narrowed, CachedAnswer] = OrderedDict()
        self._building: dict[tuple[_Narrowed, int], asyncio.Task[CachedAnswer]] = {}

    async def get(
        self, identity: str, version: int, metrics: Metrics, build: BuildAnswer
    ) -> CachedAnswer:
        """The answer of that version or a later one, built once for requests at the same time."""
        of = identity, metrics
        body = self._answers.get(of)
        if body is not None and body.version == version:
            return body
        task = self._building.get((of, version))
        if task is None:
            task = asyncio.create_task(self._build(of, build))
            self._building[of, version] = task
            task.add_done_callback(lambda _: self._building.pop((of, version)))
        return await asyncio.shield(task)  # a client that disconnects must not cancel it for others

    async def _build(self, of: _Narrowed, build: BuildAnswer) -> CachedAnswer:
        return self._keep(of, *await asyncio.to_thread(build))

    def _keep(self, of: _Narrowed, answer: Run, version: int) -> CachedAnswer:
        over = run_store.is_over(answer)
        body = CachedAnswer(version, over, answer.model_dump_json().encode())
        self._answers[of] = body
        self._answers.move_to_end(of)
        if len(self._answers) > _MOST_CACHED:
            self._answers.popitem(last=False)
        return body


class ListAnswerCache:
    """The answers of versions of ended runs, as lists show them."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, int, Metrics], bytes] = OrderedDict()
        self._lock = Lock()

    def get(
        self,
        versions: Sequence[tuple[str, int]],
        metrics: Metrics,
        build: Callable[[Sequence[str]], Sequence[Run]],
    ) -> list[bytes]:
        """The answers of these runs, by id and version; those that are not here are built all at
        once, of which one that was deleted just now is left out.
        """
        with self._lock:
            found = {
                at[0]: self._answers[*at, metrics]
                for at in versions
                if (*at, metrics) in self._answers
            }
        others = dict(at for at in versions if at[0] not in found)
        for answer in build([*others]):
            found[answer.id] = text = answer.model_dump_json().encode()
            if run_store.is_over(answer):
                self._keep((answer.id, others[answer.id], metrics), text)
        return [found[identity] for identity, _ in versions if identity in found]

    def _keep(self, version: tuple[str, int, Metrics], text: bytes) -> None:
        with self._lock:
            self._answers[version] = text
            if len(self._answers) > _MOST_LISTED:
                self._answers.popitem(last=False)
