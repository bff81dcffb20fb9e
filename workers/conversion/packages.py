"""A package of a state dict, its map and its words becomes a captioner."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.contract.errors import InvalidPackage
from service.contract.formats import packages, state_dicts
from service.contract.formats.checkpoint_header import Description
from service.contract.formats.packages import Package
from service.contract.formats.state_dicts import StateDict
from workers.conversion import converting
from workers.conversion import state_dicts as files
from workers.conversion.converting import Tensors
from workers.conversion.sandboxed import Box

_CHUNK = 1 << 24


def convert(path: Path, box: Box) -> tuple[Description, Tensors]:
    """Raises RequestRefused, or UnusableCheckpoint, where the tensors are not those of the map."""
    with _taken_out(path) as (found, tensors):
        arrays, _ = files.read(tensors, box)
        return converting.convert(arrays, found.by_id, found.map, found.encoder)


@contextmanager
def _taken_out(path: Path) -> Iterator[tuple[StateDict, Path]]:
    """What a package says, and a file with its tensors."""
    with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
        with packages.opened(path) as package:
            found = state_dicts.read(package)
            tensors = Path(folder) / "tensors"
            _take_out(package, found.tensors, tensors)
        yield found, tensors


def _take_out(package: Package, name: str, path: Path) -> None:
    size = package.file(name).size
    with package.file(name).open() as stream, path.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            out.write(chunk)
        if out.tell() != size:
            raise InvalidPackage(f"{name}: expected {size:,} bytes, found {out.tell():,}")
