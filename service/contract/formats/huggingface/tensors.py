"""The tensors of a package: where they lie, and whether they are those that its config asks for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from service.contract.errors import InvalidPackage, TensorMismatch
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.huggingface.family import TransformersFamily
from service.contract.formats.packages import ModelPackage
from service.contract.formats.safetensors_header import TensorEntry

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_STRUCTURE = 400_000  # of a header: some 8,000 tensors
_MOST_INDEX = 4_000_000
_DTYPES = ("F32", "F16", "BF16", "F64")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")
# What no output depends on: masks and counted positions that older versions saved, and poolers.
_BUFFER = re.compile(
    r"(.*\.)?((attn|crossattention)\.(masked_)?bias|position_ids|attn_mask|relative_position_index"
    r"|pooler\.(dense|layernorm)\.(weight|bias))"
)
_TWINS: Mapping[str, str] = {  # the same tensor under a second name
    "decoder.lm_head.weight": "decoder.transformer.wte.weight",
    "decoder.cls.predictions.decoder.weight": "decoder.bert.embeddings.word_embeddings.weight",
    "decoder.cls.predictions.decoder.bias": "decoder.cls.predictions.bias",
    "text_decoder.cls.predictions.decoder.weight": (
        "text_decoder.bert.embeddings.word_embeddings.weight"
    ),
    "text_decoder.cls.predictions.decoder.bias": "text_decoder.cls.predictions.bias",
    "output.weight": "git.embeddings.word_embeddings.weight",
}
_OUTPUT = "language_model.lm_head.weight"
_INPUTS = (  # of which a family has one
    "language_model.model.decoder.embed_tokens.weight",
    "language_model.model.embed_tokens.weight",
)


@dataclass(frozen=True)
class LocatedTensor:
    """Place of a tensor: its file, and the byte from which its data are counted."""

    file: str
    data_start: int
    entry: TensorEntry


def locate_tensors(
    package: ModelPackage, family: TransformersFamily
) -> Mapping[str, LocatedTensor]:
    found: dict[str, LocatedTensor] = {}
    for name in _files(package):
        file = package.file(name)
        with file.open() as stream:
            header = safetensors_header.read_safetensors_header(
                stream, file.size, max_structure=_MOST_STRUCTURE
            )
        for own, entry in header.tensors.items():
            tensor = family.renamed(own)
            if tensor in found:
                raise TensorMismatch(f"tensor {tensor!r:.100} is there twice")
            found[tensor] = LocatedTensor(name, header.data_start, entry)
    _check(found, family)
    return found


def is_buffer(name: str) -> bool:
    return _BUFFER.fullmatch(name) is not None


def find_tied_tensors(
    found: Mapping[str, LocatedTensor], family: TransformersFamily
) -> Mapping[str, str]:
    """Tensors that the configuration ties to others, which have to be equal to them."""
    expected = family.shapes()
    known = {**_TWINS, _OUTPUT: next((each for each in _INPUTS if each in expected), "")}
    return {
        name: known[name] for name in found if name not in expected and known.get(name) in expected
    }


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


def _check(found: Mapping[str, LocatedTensor], family: TransformersFamily) -> None:
    expected = family.shapes()
    missing = sorted(set(expected) - set(found))
    others = set(found) - set(expected) - set(find_tied_tensors(found, family))
    unknown = sorted(name for name in others if not is_buffer(name))
    if missing or unknown:
        parts = [f"{len(missing)} missing, as {missing[0]}"] if missing else []
        parts += [f"{len(unknown)} not known, as {unknown[0]!r:.100}"] if unknown else []
        raise TensorMismatch(
            f"config.json describes a model of {len(expected)} tensors; {'; '.join(parts)}"
        )
    for name, shape in expected.items():
        entry = found[name].entry
        if entry.shape != shape:
            raise TensorMismatch(
                f"tensor {name}: config.json asks for shape {list(shape)}, found "
                f"{list(entry.shape)!s:.100}",
                pointer=f"/{name}",
            )
        if entry.dtype not in _DTYPES:
            raise TensorMismatch(
                f"tensor {name}: expected a dtype of {', '.join(_DTYPES)}, found {entry.dtype}; "
                "save it without quantization",
                pointer=f"/{name}",
            )
