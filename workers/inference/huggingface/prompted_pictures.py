"""Pictures with a prompt, as a network reads them: inputs that a child in the sandbox prepares."""

import io
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from prescore import plain_text
from service.contract import limits
from service.contract.errors import UnusableCheckpoint
from service.contract.formats import packages
from service.contract.formats.bundles.files import PicturePlace, find_pictures
from service.contract.formats.packages import MOST_TOKENIZER_BYTES
from service.contract.settings import Sandbox
from service.kernel import process_limits
from service.kernel.confinement import list_skipped_mechanisms
from service.kernel.process_limits import ChildLimits
from workers.inference import pictures
from workers.inference.inputs import NetworkInputs
from workers.inference.tokenizer_child import TokenizerChild
from workers.sandbox import exchange, operations
from workers.sandbox.exchange import AnsweringChild
from workers.sandbox.operations import StayingChild

Prepare = Callable[[bytes], NetworkInputs]

_OPERATION = "workers.inference.huggingface.folder_processor:serve_processor"
_MOST_BYTES = 1 << 30  # of the inputs for one picture
_SECONDS = 60.0  # of one answer; the first loads the library
_MEMORY = 4_000_000_000
_DIMENSIONS, _MOST_LENGTH = 6, 1 << 30
_DTYPES = ("int64", "int32", "float32", "bool", "uint8")
_BLOCK_BYTES = 512_000_000  # of inputs that are in memory while a network has not read them


class PictureFault(Exception):
    """A picture that cannot be decoded; the text says why."""


class ProcessorChild(TokenizerChild):
    """A folder's processor and tokenizer in the sandbox; in this process if it `is_confined`. All
    that it answers is judged. `prompt`: the whole text; `pieces`: all ids are below it; `end`: the
    piece that ends an answer in the folder's template.
    """

    def __init__(
        self, package: Path, prompt: str, sandbox: Sandbox, *, is_confined: bool = False
    ) -> None:
        parameters = {"prompt": prompt, "most_pixels": limits.PIXELS}
        told: list[Mapping[str, Any]] = []

        def start() -> AnsweringChild:
            child: StayingChild | _ThisProcess
            if is_confined:
                child = _ThisProcess(package, parameters)
            else:
                with _join_texts(package) as read:
                    child = StayingChild(
                        _OPERATION,
                        [read],
                        parameters,
                        shared=exchange.SHARED_BYTES,
                        limits=ChildLimits(_SECONDS, None, _MEMORY),
                        without=list_skipped_mechanisms(sandbox),
                    )
            told.append(child.told)
            return child

        super().__init__(start, "the processor of pictures and prompt")
        match told[0]:
            case {"pieces": int(pieces), "end": end, "prompt": str(prompt)} if (
                end is None or isinstance(end, int)
            ):
                self.pieces, self.end, self.prompt = pieces, end, plain_text.quoted(prompt)
            case _:
                raise _wrong("pieces, end and prompt")

    def prepare(self, picture: bytes) -> NetworkInputs:
        """Inputs for one picture. Raises UnusableCheckpoint."""
        told, found = self.ask("prepare", picture, _MOST_BYTES)
        if isinstance(reason := told.get("undecoded"), str):
            raise PictureFault(plain_text.quoted(reason))
        tensors, at = {}, 0
        for name, dtype, shape in _judge_tensors(told.get("tensors"), len(found)):
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            array = np.frombuffer(found, dtype, count=size // np.dtype(dtype).itemsize, offset=at)
            tensors[name] = torch.from_numpy(array.reshape(shape))
            at += size
        return tensors


@contextmanager
def _join_texts(package: Path) -> Iterator[Path]:
    """A package as one file, since a converter is given no folders: of a folder, a tar of its texts
    alone, which a processor is built of.
    """
    if not package.is_dir():
        yield package
        return
    with tempfile.NamedTemporaryFile(prefix="prescore-", suffix=".tar") as joined:
        with tarfile.open(fileobj=joined, mode="w") as tar, packages.open_package(package) as found:
            for name, file in found.files.items():
                if name.endswith((".json", ".jinja")) and file.size <= MOST_TOKENIZER_BYTES:
                    entry = tarfile.TarInfo(name)
                    entry.size = file.size
                    with file.open() as stream:
                        tar.addfile(entry, stream)
        joined.flush()
        yield Path(joined.name)


class _ThisProcess:
    """The same without a child, for a trial: all its answers together take as long as one of a
    child's.
    """

    is_open = True

    def __init__(self, package: Path, parameters: Mapping[str, Any]) -> None:
        from workers.inference.huggingface.folder_processor import serve_processor

        self.memory = memoryview(bytearray(exchange.SHARED_BYTES))
        self._left = _SECONDS
        with self._end_in_time():
            self.told, self._handler = serve_processor([package], parameters, self.memory)

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        with self._end_in_time():
            return self._handler(request)

    @contextmanager
    def _end_in_time(self) -> Iterator[None]:
        began = time.process_time()
        late = operations.InputRefused(f"its trial took longer than {_SECONDS:g} s")
        try:
            with process_limits.end_after(self._left, late):
                yield
        finally:
            self._left = max(0.0, self._left - (time.process_time() - began))

    def close(self) -> None:
        """Nothing to close."""


def _judge_tensors(told: object, size: int) -> list[tuple[str, str, list[int]]]:
    found, total = [], 0
    for each in told if isinstance(told, list) else []:
        match each:
            case [str(name), str(dtype), list(shape)] if (
                dtype in _DTYPES
                and 1 <= len(shape) <= _DIMENSIONS
                and all(type(side) is int and 0 <= side <= _MOST_LENGTH for side in shape)
            ):
                found.append((name, dtype, shape))
                total += int(np.prod(shape, dtype=np.float64)) * np.dtype(dtype).itemsize
            case _:
                raise _wrong("tensors")
    if not found or total != size:
        raise _wrong("tensors of as many bytes as it wrote")
    return found


def _wrong(expected: str) -> UnusableCheckpoint:
    return UnusableCheckpoint(
        f"the process with the folder's processor answered something else: expected {expected}"
    )


@dataclass(frozen=True)
class PromptedPictures:
    """Inputs for images of a bundle, prepared when they are asked for."""

    prepare: Prepare
    bundle: Path
    images: Sequence[str]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> "PromptedPictures":
        names = [self.images[row] for row in np.arange(len(self))[rows]]
        return PromptedPictures(self.prepare, self.bundle, names)

    def group_alike(self, most: int) -> Iterator[tuple[list[int], NetworkInputs]]:
        """Yield rows whose inputs have one shape, at most so many together, and these inputs."""
        waiting: dict[Any, list[tuple[int, NetworkInputs]]] = {}
        size = 0
        for row, found in enumerate(self._read()):
            shape = tuple((name, tuple(each.shape)) for name, each in sorted(found.items()))
            alike = waiting.setdefault(shape, [])
            alike.append((row, found))
            own = sum(each.nbytes for each in found.values())  # as many as each of its group
            size += own
            if len(alike) == most:
                size -= own * most
                yield _join(waiting.pop(shape))
            elif size > _BLOCK_BYTES:
                yield from map(_join, waiting.values())
                waiting, size = {}, 0
        yield from map(_join, waiting.values())

    def _read(self) -> Iterator[NetworkInputs]:
        undecoded: dict[str, str] = {}
        for image, place in zip(self.images, find_pictures(self.bundle, self.images), strict=True):
            reason = place
            if isinstance(place, PicturePlace):
                with place.path.open("rb") as stream:
                    stream.seek(place.start)
                    content = stream.read(place.size)
                try:
                    yield self.prepare(content)
                    continue
                except PictureFault as wrong:
                    reason = str(wrong)
            undecoded[image] = str(reason)
        if undecoded:
            raise pictures.build_undecoded_error(undecoded)


@dataclass(frozen=True)
class SamplePicture:
    """One grey picture, to try a captioner with."""

    prepare: Prepare

    def __len__(self) -> int:
        return 1

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> "SamplePicture":
        return self

    def group_alike(self, most: int) -> Iterator[tuple[list[int], NetworkInputs]]:  # noqa: ARG002
        stream = io.BytesIO()
        Image.new("RGB", (320, 240), "grey").save(stream, "PNG")
        yield [0], self.prepare(stream.getvalue())


def _join(group: Sequence[tuple[int, NetworkInputs]]) -> tuple[list[int], NetworkInputs]:
    rows, inputs = [row for row, _ in group], [found for _, found in group]
    return rows, {name: torch.cat([each[name] for each in inputs]) for name in inputs[0]}
