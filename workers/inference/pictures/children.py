"""Children in the sandbox that decode pictures, some at a time. What a child writes is judged."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from prescore import plain_text
from service.contract import limits
from service.contract.errors import SandboxUnavailable
from service.contract.formats.bundles.files import PicturePlace
from service.kernel.confinement import list_skipped_mechanisms
from service.kernel.process_limits import ChildLimits
from workers.sandbox import operations

_BATCH = 128  # pictures of a child: it takes half a second to start
_SECONDS = 20.0  # after which a child leaves the rest to the next one
_ONE_SECONDS = 40.0  # that a single picture may take
_MOST_BYTES = 256_000_000  # of output, after which it does so, too
_MEMORY = 2_500_000_000  # a WebP of as many pixels as may be takes 1.3 GB
_FILE_BYTES = _MOST_BYTES + 3 * limits.PIXELS
_LINES_BYTES = 1_000_000

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class PictureDecodingFailure:
    """A picture that is not there or cannot be decoded; `reason` is one line."""

    image: str
    reason: str

    def __str__(self) -> str:
        return f"{self.image}: {self.reason}"


@dataclass(frozen=True)
class PictureOperation(Generic[T_co]):
    """A function of `decoder`, with its parameters. `take` reads what the child has written of a
    picture, of which it has told this; None where that is not what was asked for.
    """

    name: str
    asked: Mapping[str, Any]
    take: Callable[[object, BinaryIO], T_co | None]


def process_pictures(
    images: Sequence[str],
    found: Sequence[PicturePlace | str],
    operation: PictureOperation[T_co],
    sandbox: str,
) -> Iterator[T_co | PictureDecodingFailure]:
    """Yield for each image, in the given order, the result for its picture. `found`: where it is,
    or why it is nowhere; `sandbox`: the setting. Raises SandboxUnavailable where it is required and
    this machine has none.
    """
    at = 0
    while at < len(found):
        batch = slice(at, at + _BATCH)
        for each in _of_one_child(images[batch], found[batch], operation, sandbox):
            yield each
            at += 1


def _of_one_child(
    images: Sequence[str],
    found: Sequence[PicturePlace | str],
    operation: PictureOperation[T_co],
    sandbox: str,
) -> Iterator[T_co | PictureDecodingFailure]:
    """Yield the results of the images that one child could process: at least of the first."""
    given = [place for place in found if isinstance(place, PicturePlace)]
    with tempfile.TemporaryDirectory(prefix="prescore-pictures-") as folder, ExitStack() as opened:
        told: Iterator[object] = iter(())
        if given:
            output, lines = Path(folder) / "output", Path(folder) / "lines"
            stopped = _run(given, (output, lines), operation, sandbox)
            told = _lines(lines, stopped)
            stream = opened.enter_context(output.open("rb"))
        for image, place in zip(images, found, strict=True):
            if isinstance(place, str):
                yield PictureDecodingFailure(image, plain_text.quoted(place))
                continue
            one = next(told, None)
            if one is None:
                return
            yield _judged(image, one, stream, operation)


def _judged(
    image: str, told: object, stream: BinaryIO, operation: PictureOperation[T_co]
) -> T_co | PictureDecodingFailure:
    if isinstance(told, str):
        return PictureDecodingFailure(image, plain_text.quoted(told))
    taken = operation.take(told, stream)
    if taken is not None:
        return taken
    return PictureDecodingFailure(
        image, "the process that decoded it wrote something else than was asked"
    )


def _run(
    given: Sequence[PicturePlace],
    outputs: tuple[Path, Path],
    operation: PictureOperation[T_co],
    sandbox: str,
) -> str | None:
    """Let a child decode; returns why it was stopped at the picture after its last line."""
    files = list(dict.fromkeys(place.path for place in given))
    number = {path: place for place, path in enumerate(files)}
    asked = {
        "pictures": [[number[place.path], place.start, place.size] for place in given],
        "most_pixels": limits.PIXELS,
        "most_bytes": _MOST_BYTES,
        "seconds": _SECONDS,
        **operation.asked,
    }
    seconds = _SECONDS + _ONE_SECONDS
    within = ChildLimits(seconds, int(seconds), _MEMORY, _FILE_BYTES)
    without = list_skipped_mechanisms(sandbox)
    try:
        operations.run_operation(
            operation.name, files, outputs, asked, limits=within, without=without
        )
    except (operations.ChildStopped, operations.InputRefused) as stopped:
        return str(stopped)
    except operations.ConfinementUnavailable as unavailable:
        raise SandboxUnavailable(
            f"{unavailable}; pictures are decoded in a sandbox alone (PRESCORE_SANDBOX)"
        ) from None
    return None


def _lines(path: Path, stopped: str | None) -> Iterator[object]:
    """Read the child's lines about the pictures, as anybody may have written them."""
    with path.open("rb") as stream:
        whole = stream.read(_LINES_BYTES).split(b"\n")[:-1]
    for line in whole:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            yield "the process that decoded it wrote no JSON"
    if stopped is not None:
        yield f"the process that decoded it {stopped}"
    elif not whole:
        yield "the process that decoded it told nothing of it"
