"""The child that runs the graphs of a bundle: an Opener of the sandbox.

Graphs are strangers' and so is what they compute. Tensors of images and of states stay here, under
numbers that the parent gives them; it names rows of them, and gets logits through shared memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from workers.sandbox.child import Handler, InputRefused

_FATAL = 4  # onnxruntime's own log; what it refuses comes as an exception
_WORD = 8  # bytes of an id or a row's number
Arrays = list[NDArray[Any]]


def serve_graphs(
    inputs: Sequence[Path], parameters: Mapping[str, Any], memory: memoryview
) -> tuple[Mapping[str, Any], Handler]:
    """`inputs`: the files that graphs lie in; `parameters`: "graphs" (for each its file's number,
    start and size), "manifest", "seen" (the name of look's input), "vocabulary" and "threads".
    """
    onnxruntime.disable_telemetry_events()
    sessions = {
        name: _session(inputs[at], start, size, name, parameters["threads"])
        for name, (at, start, size) in parameters["graphs"].items()
    }
    served = _GraphServer(sessions, parameters, memory)
    return {}, served.answer


def _session(path: Path, start: int, size: int, name: str, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _FATAL
    options.enable_mem_pattern = False  # each call has other numbers of rows
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with path.open("rb") as stream:
        stream.seek(start)
        content = stream.read(size)
    with_names = ["CPUExecutionProvider"]
    return _told(name, lambda: onnxruntime.InferenceSession(content, options, with_names))


def _told(name: str, perform: Callable[[], Any]) -> Any:
    """Onnxruntime raises a class for each of its statuses, which have no base of their own."""
    try:
        return perform()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  there is nothing else to name
        text = str(error)
        if "allocat" in text.lower() or "bad_alloc" in text:
            raise MemoryError from None
        raise InputRefused(f"{name}: {text}") from None


def _joined(parts: Sequence[Arrays]) -> Arrays:
    if len(parts) == 1:
        return parts[0]
    for one in zip(*parts, strict=True):
        shapes = {each.shape[1:] for each in one}
        if len(shapes) > 1:
            raise InputRefused(
                f"look: expected one shape for all images, found {sorted(shapes)!s:.200}"
            )
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


@dataclass
class _GraphTensors:
    images: Arrays = field(default_factory=list)
    state: Arrays = field(default_factory=list)


class _GraphServer:
    def __init__(
        self,
        sessions: Mapping[str, Any],
        parameters: Mapping[str, Any],
        memory: memoryview,
    ) -> None:
        self._sessions = sessions
        self._inputs = {
            name: {each.name for each in session.get_inputs()} for name, session in sessions.items()
        }
        self._manifest = parameters["manifest"]
        self._seen = parameters["seen"]
        self._vocabulary = parameters["vocabulary"]
        self._memory = memory
        self._kept: dict[int, _GraphTensors] = {}
        self._looked: list[Arrays] = []  # parts of what is looked at, until the last one is there
        self._features: NDArray[np.float32] | None = None
        self._logits: NDArray[np.uint8] | None = None

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        for number in request["forget"]:
            self._kept.pop(number, None)
        operations: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "put": self._put,
            "look": self._look,
            "step": self._step,
            "score": self._score,
            "more": self._more,
            "check": self._check,
        }
        operations[request["do"]](request)
        return {}

    def _put(self, request: Mapping[str, Any]) -> None:
        """A part of the features or pixels that are looked at next."""
        if request["start"] == 0:
            self._features = np.empty(request["shape"], np.float32)
        assert self._features is not None
        end = request["start"] + request["bytes"]
        flat = self._features.reshape(-1).view(np.uint8)
        flat[request["start"] : end] = np.frombuffer(self._memory, np.uint8, request["bytes"])

    def _look(self, request: Mapping[str, Any]) -> None:
        features, self._features = self._features, None
        assert features is not None
        images = [each["look"] for each in self._manifest["images"]]
        first = [each["first"] for each in self._manifest["state"]]
        found = self._run("look", {self._seen: features}, [*images, *first])
        for name, array in zip([*images, *first], found, strict=True):
            if array.ndim < 1 or len(array) != len(features):
                raise InputRefused(
                    f"look: expected {name!r:.100} to have a row for each of {len(features)} "
                    f"images, found shape {list(array.shape)}"
                )
        self._looked = [*self._looked, found] if request["part"] else [found]
        if request["is_last"]:
            whole, self._looked = _joined(self._looked), []
            self._kept[request["as"]] = _GraphTensors(whole[: len(images)], whole[len(images) :])

    def _step(self, request: Mapping[str, Any]) -> None:
        n = request["rows"]
        of_images, of_state, words = self._numbers(3, n)
        images = self._rows(self._kept[request["images"]].images, of_images)
        before = self._rows(self._kept[request["state"]].state, of_state)
        part, states = self._manifest["step"], self._manifest["state"]
        feeds = {part["words"]: words, **self._fed(images, before)}
        asked = [part["logits"], *(each["after"] for each in states)]
        logits, *after = self._run("step", feeds, asked)
        for each, array in zip(states, after, strict=True):
            if array.ndim < 1 or len(array) != n:
                raise InputRefused(
                    f"step: expected {each['after']!r:.100} to have a row for each of {n} words, "
                    f"found shape {list(array.shape)}"
                )
        self._kept[request["as"]] = _GraphTensors(state=after)
        self._give("step", logits, (n, self._vocabulary))

    def _score(self, request: Mapping[str, Any]) -> None:
        n, length = request["rows"], request["length"]
        rows, words = self._numbers(1, n)[0], self._numbers(length, n, start=1)
        kept, part = self._kept[request["images"]], self._manifest["score"]
        fed = self._fed(self._rows(kept.images, rows), self._rows(kept.state, rows))
        there = {name: each for name, each in fed.items() if name in self._inputs["score"]}
        feeds = {part["words"]: np.ascontiguousarray(words.T), **there}
        (logits,) = self._run("score", feeds, [part["logits"]])
        self._give("score", logits, (n, length, self._vocabulary))

    def _more(self, request: Mapping[str, Any]) -> None:
        """The next part of the last logits."""
        assert self._logits is not None
        part = self._logits[request["start"] : request["start"] + len(self._memory)]
        np.frombuffer(self._memory, np.uint8)[: len(part)] = part

    def _check(self, request: Mapping[str, Any]) -> None:
        """Refuse NaN in images and states. Infinite numbers may be masks."""
        kept = self._kept[request["of"]]
        for array in (*kept.images, *kept.state):
            if array.dtype.kind == "f" and np.isnan(array).any():
                raise InputRefused("expected numbers in all images and states, found NaN")

    def _run(self, name: str, feeds: Mapping[str, Any], asked: Sequence[str]) -> Arrays:
        session = self._sessions[name]
        found: Arrays = _told(name, lambda: session.run(list(asked), dict(feeds)))
        for output, array in zip(asked, found, strict=True):
            if not isinstance(array, np.ndarray):
                raise InputRefused(f"{name}: expected {output!r:.100} to be a tensor")
        return found

    def _fed(self, images: Arrays, state: Arrays) -> dict[str, NDArray[Any]]:
        manifest = self._manifest
        names = [each["step"] for each in manifest["images"]]
        names += [each["before"] for each in manifest["state"]]
        return dict(zip(names, [*images, *state], strict=True))

    def _rows(self, arrays: Arrays, rows: NDArray[np.int64]) -> Arrays:
        """Copies only where they are other rows, or in another order."""
        same = not len(arrays) or np.array_equal(rows, np.arange(len(arrays[0])))
        return arrays if same else [array[rows] for array in arrays]

    def _numbers(self, lists: int, n: int, start: int = 0) -> NDArray[np.int64]:
        """Lists of n numbers, copied from the shared memory."""
        found = np.frombuffer(self._memory, np.int64, lists * n, start * n * _WORD)
        return found.reshape(lists, n).copy()

    def _give(self, name: str, logits: NDArray[Any], shape: tuple[int, ...]) -> None:
        if logits.shape != shape or logits.dtype != np.float32:
            raise InputRefused(
                f"{name}: expected logits of float32 {list(shape)}, "
                f"found {logits.dtype} {list(logits.shape)}"
            )
        self._logits = np.ascontiguousarray(logits).reshape(-1).view(np.uint8)
        self._more({"start": 0})
