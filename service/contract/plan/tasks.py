"""Tasks: computations that are identified by a key, and their states.

A task's key is the SHA-256 of what defines its result: kind, inputs, parameters, code version. An
input is a blob by its digest, or another task by its key. A task may *wait for* more (a large task
waits for its shards), which does not change its key.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from prescore.models.runs import RunStatus, TaskStatus
from service.contract.metrics.families import FAMILIES
from service.contract.metrics.views import View

Queue = Literal["inference-now", "inference", "metrics", "parsing"]
QUEUES: Mapping[str, tuple[Queue, ...]] = {  # by the worker's role, in order of priority
    "inference": ("inference-now", "inference"),
    "metrics": ("metrics", "parsing"),
}

TERMINAL: frozenset[TaskStatus] = frozenset({"done", "failed", "canceled", "unavailable"})
RESTARTED: frozenset[TaskStatus] = frozenset({"failed", "canceled", "unavailable"})


@dataclass(frozen=True)
class Kind:
    """`version` counts the changes of code that change results; it is part of every key."""

    name: str
    queue: Queue
    version: int
    seconds: int  # the longest that one attempt may take
    caption: float = 1e-4  # seconds that one takes, roughly


OTHERS: dict[str, Kind] = {  # kinds that are not families of metrics
    kind.name: kind
    for kind in (
        Kind("features", "inference", version=1, seconds=1800, caption=0.04),
        Kind("picture_digests", "metrics", version=1, seconds=900, caption=5e-4),
        Kind("thumbnails", "metrics", version=1, seconds=900, caption=0.06),
        Kind("prefix", "inference-now", version=1, seconds=300),
        Kind("checkpoint", "inference-now", version=1, seconds=900),
        Kind("columns", "inference-now", version=1, seconds=900),
        Kind("brought", "inference-now", version=1, seconds=300),
        Kind("pregen", "inference-now", version=1, seconds=300),
        Kind("corpus_perplexity", "inference-now", version=1, seconds=300),
        Kind("forecast", "inference-now", version=1, seconds=300),
        Kind("order", "inference-now", version=1, seconds=300),
        Kind("captions", "inference", version=2, seconds=1800),
        Kind("look", "metrics", version=1, seconds=900),
        Kind("references", "metrics", version=2, seconds=900, caption=5e-5),
        Kind("tuples", "parsing", version=1, seconds=3600, caption=0.03),
        Kind("embedded_references", "parsing", version=1, seconds=3600, caption=0.005),
        Kind("reference_sentences", "parsing", version=1, seconds=3600, caption=0.005),
        Kind("training", "metrics", version=1, seconds=900, caption=5e-5),
        Kind("learned", "parsing", version=2, seconds=7200, caption=0.05),
        Kind("learned_accord", "parsing", version=2, seconds=7200, caption=0.02),
        Kind("probe", "parsing", version=1, seconds=7200, caption=0.02),
        Kind("health", "metrics", version=1, seconds=300),
        Kind("comparison", "metrics", version=2, seconds=900),
        Kind("strata", "metrics", version=1, seconds=300),
        Kind("study", "metrics", version=2, seconds=300),
    )
}


def _kinds() -> dict[str, Kind]:
    of_families = {
        name: Kind(name, row.queue, version=row.version, seconds=row.seconds)
        for name, row in FAMILIES.items()
    }
    return OTHERS | of_families


KINDS: Mapping[str, Kind] = View(_kinds, OTHERS, FAMILIES)


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
            "inputs": {name: reference(value) for name, value in self.inputs.items()},
            "parameters": dict(self.parameters),
        }
        return hashlib.sha256(canonical(identity).encode()).hexdigest()

    @property
    def needs(self) -> tuple["Task", ...]:
        """The tasks that must be done before this one can run."""
        return (*(value for value in self.inputs.values() if isinstance(value, Task)), *self.parts)

    def everything(self) -> "list[Task]":
        return everything([self])


def everything(wanted: Iterable[Task]) -> list[Task]:
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


def reference(value: Blob | Task) -> str:
    return str(value) if isinstance(value, Blob) else f"work:{value.key}"


def canonical(value: Any) -> str:
    """The same JSON text for equal values; keys are hashed from it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def derive(statuses: Iterable[TaskStatus]) -> RunStatus:
    """A run's status, derived from its tasks' statuses alone."""
    found = set(statuses)
    if not found <= TERMINAL:
        return "running" if found - {"waiting", "ready"} else "queued"
    if "failed" in found:
        return "failed"
    return "canceled" if "canceled" in found else "succeeded"
