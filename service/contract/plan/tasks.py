"""Tasks: computations that are identified by a key, their states, and their shards.

A task's key is the SHA-256 of what defines its result: kind, inputs, parameters, code version. An
input is a blob by its digest, or another task by its key. A task may *wait for* more (a large task
waits for its shards), which does not change its key.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from prescore.models.runs import RunStatus, TaskStatus
from service.contract.metrics.derived_tables import DerivedTable
from service.contract.metrics.families import FAMILIES

Queue = Literal["inference-now", "verification", "inference", "metrics", "parsing"]
# By the worker's role: the first one comes before the others, which take turns.
QUEUES: Mapping[str, tuple[Queue, ...]] = {
    "inference": ("inference-now", "verification", "inference"),
    "metrics": ("metrics", "parsing"),
}

UNFINISHED: Sequence[TaskStatus] = ("waiting", "ready", "running")
TERMINAL: frozenset[TaskStatus] = frozenset({"done", "failed", "canceled", "unavailable"})
RESTARTED: frozenset[TaskStatus] = frozenset({"failed", "canceled", "unavailable"})


@dataclass(frozen=True)
class TaskKind:
    """`version` counts the changes of code that change results; it is part of every key."""

    name: str
    queue: Queue
    version: int
    seconds: int  # the longest that one attempt may take
    caption: float = 1e-4  # seconds that one takes, roughly


OTHER_KINDS: dict[str, TaskKind] = {  # kinds that are not families of metrics
    kind.name: kind
    for kind in (
        TaskKind("features", "inference", version=1, seconds=1800, caption=0.04),
        TaskKind("picture_digests", "metrics", version=1, seconds=900, caption=5e-4),
        TaskKind("thumbnails", "metrics", version=1, seconds=900, caption=0.06),
        TaskKind("prefix", "inference-now", version=1, seconds=300),
        TaskKind("checkpoint", "verification", version=1, seconds=900),
        TaskKind("columns", "inference-now", version=1, seconds=900),
        TaskKind("brought", "inference-now", version=1, seconds=300),
        TaskKind("pregen", "inference-now", version=1, seconds=300),
        TaskKind("corpus_perplexity", "inference-now", version=1, seconds=300),
        TaskKind("bits_per_byte", "inference-now", version=1, seconds=300),
        TaskKind("forecast", "inference-now", version=2, seconds=300),
        TaskKind("order", "inference-now", version=1, seconds=300),
        TaskKind("captions", "inference", version=2, seconds=1800),
        TaskKind("look", "metrics", version=1, seconds=900),
        TaskKind("references", "metrics", version=2, seconds=900, caption=5e-5),
        TaskKind("tuples", "parsing", version=1, seconds=3600, caption=0.03),
        TaskKind("embedded_references", "parsing", version=1, seconds=3600, caption=0.005),
        TaskKind("reference_sentences", "parsing", version=1, seconds=3600, caption=0.005),
        TaskKind("training", "metrics", version=1, seconds=900, caption=5e-5),
        TaskKind("learned", "parsing", version=2, seconds=7200, caption=0.05),
        TaskKind("learned_accord", "parsing", version=2, seconds=7200, caption=0.02),
        TaskKind("probe", "parsing", version=1, seconds=7200, caption=0.02),
        TaskKind("health", "metrics", version=1, seconds=300),
        TaskKind("comparison", "metrics", version=2, seconds=900),
        TaskKind("strata", "metrics", version=1, seconds=300),
        TaskKind("study", "metrics", version=2, seconds=300),
    )
}


def _kinds() -> dict[str, TaskKind]:
    of_families = {
        name: TaskKind(name, row.queue, version=row.version, seconds=row.seconds)
        for name, row in FAMILIES.items()
    }
    return OTHER_KINDS | of_families


KINDS: Mapping[str, TaskKind] = DerivedTable(_kinds, OTHER_KINDS, FAMILIES)


@dataclass(frozen=True)
class Blob:
    digest: str  # sha256:…

    def __str__(self) -> str:
        return self.digest


@dataclass(frozen=True)
class Task:
    kind: str
    inputs: Mapping[str, "Blob | Task"]
    parameters: Mapping[str, Any]
    parts: tuple["Task", ...] = field(default=(), compare=False)  # shards whose results are joined
    price: float = field(default=1.0, compare=False)  # seconds, roughly (`prices.py`)

    @cached_property
    def key(self) -> str:
        identity = {
            "kind": self.kind,
            "version": KINDS[self.kind].version,
            "inputs": {name: name_input(value) for name, value in self.inputs.items()},
            "parameters": dict(self.parameters),
        }
        return hashlib.sha256(dump_canonical_json(identity).encode()).hexdigest()

    @property
    def needs(self) -> tuple["Task", ...]:
        """The tasks that must be done before this one can run."""
        return (*(value for value in self.inputs.values() if isinstance(value, Task)), *self.parts)

    def everything(self) -> "list[Task]":
        return collect_tasks([self])


def collect_tasks(wanted: Iterable[Task]) -> list[Task]:
    """These tasks and all that they need, directly or not: each once, needed ones first."""
    found: dict[str, Task] = {}

    def add(task: Task) -> None:
        if task.key not in found:
            for need in task.needs:
                add(need)
            found[task.key] = task

    for task in wanted:
        add(task)
    return list(found.values())


def name_input(value: Blob | Task) -> str:
    return str(value) if isinstance(value, Blob) else f"work:{value.key}"


def dump_canonical_json(value: Any) -> str:
    """The same JSON text for equal values; keys are hashed from it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def derive_run_status(statuses: Iterable[TaskStatus]) -> RunStatus:
    """A run's status, derived from its tasks' statuses alone."""
    found = set(statuses)
    if not found <= TERMINAL:
        return "running" if found - {"waiting", "ready"} else "queued"
    if "failed" in found:
        return "failed"
    return "canceled" if "canceled" in found else "succeeded"


# How many images are computed at once. The last bits of a matrix product depend on its size, so the
# block is part of a result: tasks are sharded in whole blocks, and planning and workers both use
# this number. Images decoded in another order than the split's are in other blocks: their order is
# an input of their captions.
BLOCK_IMAGES = 128
USUAL_SEARCH = 3 * 50  # a beam of 3, 50 words
LONG_SEARCH = 1000  # above this, captions need not end early
MAX_PARTS = 500  # of one task


def size_decoding_block(beam: int, max_words: int) -> int:
    """Images of a block; fewer for a longer search, so that all blocks take about the same time."""
    return max(1, min(BLOCK_IMAGES, BLOCK_IMAGES * USUAL_SEARCH // (beam * max_words)))


def shard_task(
    kind: str,
    inputs: Mapping[str, Blob | Task],
    parameters: Mapping[str, Any],
    images: int,
    block: int,
    wanted: int,
) -> Task:
    """One task for all images, joined from parts of about `wanted` images where there are more.

    Parts are whole blocks, and larger than `wanted` where there would be more than MAX_PARTS.
    """
    size = block * max(1, wanted // block, math.ceil(images / (block * MAX_PARTS)))
    starts = range(0, images, size)
    parts = tuple(
        Task(kind, inputs, {**parameters, "images": [start, min(start + size, images)]})
        for start in starts
    )
    return Task(kind, inputs, parameters, parts if len(parts) > 1 else ())
