"""Caches of answers as bytes: building an answer for every poll takes ten times as long."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from prescore.models.runs import Run
from service.runs import base

Build = Callable[[], tuple[Run, int]]
_KEPT = 1_000  # runs; about 3 KB each
_LISTED = 2_000


@dataclass(frozen=True)
class KeptAnswer:
    version: int
    over: bool
    text: bytes


class KeptAnswers:
    """The answer of the last version of each run that was polled."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()
        self._building: dict[tuple[str, int], asyncio.Task[KeptAnswer]] = {}

    async def get(self, identity: str, version: int, build: Build) -> KeptAnswer:
        """The answer of that version or a later one, built once for requests at the same time."""
        body = self._answers.get(identity)
        if body is not None and body.version == version:
            return body
        task = self._building.get((identity, version))
        if task is None:
            task = asyncio.create_task(self._build(build))
            self._building[identity, version] = task
            task.add_done_callback(lambda _: self._building.pop((identity, version)))
        return await asyncio.shield(task)  # a client that disconnects must not cancel it for others

    async def _build(self, build: Build) -> KeptAnswer:
        return self._keep(*await asyncio.to_thread(build))

    def _keep(self, answer: Run, version: int) -> KeptAnswer:
        over = base.is_over(answer)
        body = KeptAnswer(version, over, answer.model_dump_json().encode())
        self._answers[answer.id] = body
        self._answers.move_to_end(answer.id)
        if len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return body


class ListedAnswers:
    """The answers of versions of ended runs, as lists show them."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._lock = Lock()

    def get(
        self,
        versions: Sequence[tuple[str, int]],
        build: Callable[[Sequence[str]], Sequence[Run]],
    ) -> list[bytes]:
        """The answers of these runs, by id and version; those that are not here are built all at
        once, of which one that was deleted just now is left out.
        """
        with self._lock:
            found = {at[0]: self._answers[at] for at in versions if at in self._answers}
        others = dict(at for at in versions if at[0] not in found)
        for answer in build([*others]):
            found[answer.id] = text = answer.model_dump_json().encode()
            if base.is_over(answer):
                self._keep((answer.id, others[answer.id]), text)
        return [found[identity] for identity, _ in versions if identity in found]

    def _keep(self, version: tuple[str, int], text: bytes) -> None:
        with self._lock:
            self._answers[version] = text
            if len(self._answers) > _LISTED:
                self._answers.popitem(last=False)
