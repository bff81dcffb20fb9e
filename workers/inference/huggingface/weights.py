"""The tensors of a package, read where they lie: nothing is unpacked, nothing else is opened."""

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import IO

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from service.contract.formats.huggingface import Captioner, tensors
from service.contract.formats.huggingface.tensors import Found
from service.contract.formats.packages import Package
from workers.inference.captioners import finite

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


def read(package: Package, judged: Captioner) -> dict[str, Tensor]:
    """In float32. Raises UnusableCheckpoint where values are not finite, or where a tensor that is
    tied to another differs from it.
    """
    twins = tensors.twins(judged.tensors, judged.family)
    wanted = [*judged.family.shapes(), *twins]
    found = dict(_tensors(package, {name: judged.tensors[name] for name in wanted}))
    for name, twin in twins.items():
        if not torch.equal(found.pop(name), found[twin]):
            raise UnusableCheckpoint(
                f"tensor {name}: expected the values of {twin}, to which config.json ties it "
                "(tie_word_embeddings), found others",
                pointer=f"/{name}",
            )
    return found


def stored_bytes(found: Iterable[Found]) -> int:
    return sum(each.entry.end - each.entry.start for each in found)


def _tensors(package: Package, wanted: Mapping[str, Found]) -> Iterator[tuple[str, Tensor]]:
    """In the order of their files, since what is compressed is read from its beginning on."""
    order = sorted(wanted.items(), key=lambda item: (item[1].file, item[1].entry.start))
    for file, group in groupby(order, key=lambda item: item[1].file):
        with package.file(file).open() as stream:
            for name, found in group:
                tensor = _tensor(stream, found)
                finite.check(name, tensor)
                yield name, tensor


def _tensor(stream: IO[bytes] | io.FileIO, found: Found) -> Tensor:
    size = found.entry.end - found.entry.start
    raw = bytearray()
    stream.seek(found.data_start + found.entry.start)
    while len(raw) < size:
        part = stream.read(size - len(raw))
        if not part:
            raise UnusableCheckpoint(f"{found.file} ends within its tensors")
        raw += part
    if not size:
        return torch.empty(found.entry.shape)
    return torch.frombuffer(raw, dtype=_DTYPES[found.entry.dtype]).view(found.entry.shape).float()
