"""All that is kept of an evaluation's captions as one safetensors file, streamed as it is read.

    captions/cider_d (N) f64             every caption's own score
    statistics/bleu/… (N, …) f64         what the corpus score is computed from, by family
    metadata                             `images` and `captions` (N, as JSON), `signatures`

Works keep a file for each family, so that another metric of the same captions recomputes none; this
puts them side by side.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.contract.formats.safetensors_header import TensorEntry
from service.runs.tensors import TensorFile

_CHUNK = 1 << 18


@dataclass(frozen=True)
class _Column:
    file: TensorFile
    entry: TensorEntry


def stream(
    results: Mapping[str, Path], images: Sequence[str], captions: Sequence[str]
) -> Iterator[bytes]:
    """`results`: the score files of the works that are done, by their names."""
    columns: dict[str, _Column] = {}
    signatures: dict[str, str] = {}
    for family, path in results.items():
        file = TensorFile(path)
        signatures |= json.loads(file.header.metadata["signatures"])
        for name, entry in file.header.tensors.items():
            part, own = name.split("/")
            full = name if part == "captions" else f"{part}/{family}/{own}"
            columns[full] = _Column(file, entry)
    metadata = {"images": images, "captions": captions, "signatures": signatures}
    yield _header(columns, {name: json.dumps(value) for name, value in metadata.items()})
    for name in sorted(columns):
        yield from columns[name].file.chunks(columns[name].entry, _CHUNK)


def _header(columns: Mapping[str, _Column], metadata: Mapping[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"prescore_captions": "1", **metadata}}
    end = 0
    for name, column in sorted(columns.items()):
        start, end = end, end + column.entry.end - column.entry.start
        header[name] = {
            "dtype": column.entry.dtype,
            "shape": list(column.entry.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
