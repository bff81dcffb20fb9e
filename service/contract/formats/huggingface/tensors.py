"""The tensors of a package: where they lie, and whether they are plain numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from service.contract.errors import InvalidPackage, TensorMismatch
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.packages import ModelPackage
from service.contract.formats.safetensors_header import TensorEntry

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_STRUCTURE = 2_000_000  # of a header: some 40,000 tensors
_MOST_INDEX = 4_000_000
DTYPES = ("F32", "F16", "BF16", "F64")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")
# What no output depends on: masks and counted positions that older versions saved, and poolers.
_BUFFER = re.compile(
    r"(.*\.)?((attn|crossattention)\.(masked_)?bias|position_ids|attn_mask|relative_position_index"
    r"|pooler\.(dense|layernorm)\.(weight|bias))"
)


@dataclass(frozen=True)
class LocatedTensor:
    """Place of a tensor: its file, and the byte from which its data are counted."""

    file: str
    data_start: int
    entry: TensorEntry


def locate_tensors(package: ModelPackage) -> Mapping[str, LocatedTensor]:
    """Locate the tensors of a package, by the names that they have in its files."""
    found: dict[str, LocatedTensor] = {}
    for file in _files(package):
        for tensor, located in locate_file_tensors(package, file).items():
            if tensor in found:
                raise TensorMismatch(f"tensor {tensor!r:.100} is there twice")
            if located.entry.dtype not in DTYPES and not is_buffer(tensor):
                raise TensorMismatch(
                    f"tensor {tensor:.200}: expected a dtype of {', '.join(DTYPES)}, found "
                    f"{located.entry.dtype}; save it without quantization",
                    pointer=f"/{tensor:.200}",
                )
            found[tensor] = located
    return found


def locate_file_tensors(package: ModelPackage, name: str) -> dict[str, LocatedTensor]:
    file = package.file(name)
    with file.open() as stream:
        header = safetensors_header.read_safetensors_header(
            stream, file.size, max_structure=_MOST_STRUCTURE
        )
    return {
        tensor: LocatedTensor(name, header.data_start, entry)
        for tensor, entry in header.tensors.items()
    }


def is_buffer(name: str) -> bool:
    return _BUFFER.fullmatch(name) is not None


def _files(package: ModelPackage) -> list[str]:
    if _WHOLE in package.files:
        return [_WHOLE]
    if _INDEX not in package.files:
        other = [name for name in sorted(package.files) if name.endswith(_PICKLED)]
        raise InvalidPackage(
            f"expected the weights in {_WHOLE}, found {', '.join(other)[:200] or 'none'}: "
            "save_pretrained(folder, safe_serialization=True) writes them"
        )
    try:
        index = strict_json.parse_json(package.text(_INDEX, _MOST_INDEX))
    except strict_json.NotJson as error:
        raise InvalidPackage(f"{_INDEX}: {error}", pointer=f"/{_INDEX}") from None
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(each, str) for each in places.values()):
        raise InvalidPackage(f"{_INDEX}: expected a weight_map of names of files")
    return sorted(set(places.values()))
