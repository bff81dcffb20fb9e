"""Runs an operation on files in a fresh child that reaches nothing else.

The child has an empty environment, no open files but those it is for, no network, and its libraries
to read. What it writes is anybody's: the caller judges it with the readers for files that strangers
send. This process starts it, or a converter does (`choose`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.sandbox.child import Refused
from workers.sandbox.converter.asking import There
from workers.sandbox.limits import Limits
from workers.sandbox.starting import Confined, Here, Stopped, Task, Unavailable

__all__ = ["Refused", "Stopped", "Unavailable", "run"]


class _Chosen:
    """For all of this process: chosen once, where it begins."""

    converter: Path | None = None


def choose(converter: Path | None) -> None:
    """Have the converter that listens at this socket start the children; without one, this process
    does it.
    """
    _Chosen.converter = converter


def run(
    operation: str,
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    parameters: Mapping[str, Any] | None = None,
    *,
    limits: Limits = Limits(),
    without: frozenset[str] = frozenset(),
    modules: Sequence[Path] = (),
) -> Mapping[str, Any]:
    """What the operation ("module:function", see `child.Operation`) answers.

    `outputs` do not exist yet; the child may write to them and to nothing else. They are left as
    they are if it fails. `modules`: folders in which Python looks for modules, besides ours and
    those that are installed. A converter knows itself what it leaves out and where it looks.

    Raises Refused with the operation's own text, Stopped, and Unavailable unless `without` says
    that the sandbox is off; and ConverterUnavailable, which says nothing of the inputs.
    """
    for output in outputs:
        output.touch(exist_ok=False)
    task = Task(operation, inputs, outputs, parameters or {}, limits)
    child = start(task, without=without, modules=modules)
    try:
        return child.begin()
    finally:
        child.end()


def start(
    task: Task, *, without: frozenset[str] = frozenset(), modules: Sequence[Path] = ()
) -> Confined:
    if _Chosen.converter is not None:
        return There(_Chosen.converter, task)
    inputs, outputs = ([each.resolve() for each in given] for given in (task.inputs, task.outputs))
    return Here(replace(task, inputs=inputs, outputs=outputs), without=without, modules=modules)
