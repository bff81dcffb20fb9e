"""Foreign formats: the format of a file or a folder, by its content, and advice for a refusal.

Only a few bytes are looked at: nothing is unpacked, parsed, or loaded, least of all a pickle. The
client says so before it sends a file, and the service of what it was sent.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prescore import model_types

HEAD_BYTES = 4096
TAIL_BYTES = 1 << 18  # where a zip has its list of names
MOST_NAMES = 10_000  # of a folder

CHECKPOINT = "a checkpoint in Prescore's safetensors format"
BUNDLE = "a dataset bundle: a tar or a folder with captions.jsonl"
STATE_DICT = "a model's tensors"
CAPTIONS = 'a JSON list of {"image" or "image_id", "caption"}'

BUNDLE_LINE = '{"image": "1.jpg", "split": "test", "references": ["a dog", "a brown dog"]}'
_AS_BUNDLE = (
    f"captions.jsonl has a line {BUNDLE_LINE} for each image, and its folder is named; `prescore "
    "convert` with `references`, `coco` or `karpathy` writes it"
)

COLUMNS = (
    "or run it where it is: prescore.Recorder writes columns, and `prescore submit --columns FILE` "
    "sends them"
)
_WRITE = (
    "load it where it was trained and write its tensors as safetensors with the names, shapes and "
    "metadata of deploy/guide/file-formats.md"
)
CONVERT = f"{_WRITE}, {COLUMNS}"
LAYERS = (
    "`prescore convert checkpoint` makes a checkpoint of a model of PyTorch's layers "
    "(deploy/guide/bring-a-model.md)"
)
_TENSORS = f"Prescore opens no pickle that is sent to it, since that would run code in it; {LAYERS}"
_NO_PICKLE = f"Prescore opens no pickle, since that would run code in it; {CONVERT}"
_ONNX = (
    "it needs a manifest beside it, prescore.json; `prescore export` makes a bundle of a captioner "
    "of PyTorch (deploy/guide/bring-a-model.md)"
)
_UNPACK, _SUBMIT = "unpack it first", "submit it as a checkpoint"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEATURES = "a bundle's features are a safetensors file (deploy/guide/datasets.md)"


@dataclass(frozen=True)
class Format:
    """Format of a file or folder. `serves`: the purposes that it may be right for, so it is read
    on. `is_package`: it may hold the files of a model.
    """

    what: str
    do: str
    serves: str = ""
    is_text: bool = False
    is_package: bool = False


TEXT = Format(
    "a text file",
    "a model's captions go to `prescore submit`, as JSON or CSV with the name of each image; "
    "deploy/guide/file-formats.md has all formats",
    is_text=True,
)
UTF16 = Format("a text in UTF-16", "save it as UTF-8")
Told = Callable[[bytes, bytes], bool]  # from the first and the last bytes of a file


def _begins(*starts: bytes, at: int = 0) -> Told:
    return lambda head, _: head[at:].startswith(starts)


def _zip(*names: bytes) -> Told:
    """A zip in whose names, as far as they are seen, all of these are."""
    return lambda head, tail: (
        head.startswith(b"PK") and all(name in head or name in tail for name in names)
    )


def _is_safetensors(head: bytes, _: bytes) -> bool:
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40


def _is_onnx(head: bytes, _: bytes) -> bool:
    """A protobuf message: the version of its format, then its producer, domain or graph."""
    return bool(re.match(rb"\x08[\x01-\x20][\x12\x1a\x22\x28\x32\x3a\x42]", head))


def _is_text(head: bytes, _: bytes) -> bool:
    """Text in UTF-8, which the last bytes may cut, or in another code that is ASCII for the most
    part.
    """
    if not head or _CONTROL.search(head):
        return False
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return sum(byte < 0x80 for byte in head) > len(head) / 2
    return True


def _matches(pattern: bytes) -> Told:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda head, _: compiled.match(head) is not None


# In this order; the first that fits counts.
_FILES: tuple[tuple[Told, Format], ...] = (
    (_is_safetensors, Format("a safetensors file", _SUBMIT, CHECKPOINT)),
    (
        _begins(b"version https://git-lfs"),
        Format("a Git LFS pointer, not the file itself", "fetch the file with `git lfs pull`"),
    ),
    (
        _zip(b"archive_format", b"models/"),
        Format("a program of torch.export (.pt2)", f"loading one runs code in it; {CONVERT}"),
    ),
    (
        _zip(b"/code/", b"constants.pkl"),
        Format("a TorchScript program", f"loading one runs code in it; {CONVERT}"),
    ),
    (_zip(b"data.pkl"), Format("a PyTorch file (a zip with a pickle)", _TENSORS, STATE_DICT)),
    (_zip(b".npy"), Format("arrays of numpy (.npz)", f"{_WRITE}; {_FEATURES}")),
    (_zip(b"model.weights.h5"), Format("a Keras model", CONVERT)),
    (_zip(b".onnx"), Format("a zip with an ONNX model", _ONNX, is_package=True)),
    (_zip(b"config.json"), Format("a zip with a Hugging Face model", _SUBMIT, is_package=True)),
    (_zip(), Format("a zip", _UNPACK, is_package=True)),
    (
        _begins(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."),
        Format("a PyTorch file (a pickle)", _TENSORS, STATE_DICT),
    ),
    (_matches(rb"\x80[\x02-\x05][\x95(\]}c\x8c]"), Format("a pickle", _NO_PICKLE)),
    (_matches(rb"\((dp|lp)[0-9]+\n|ccopy_reg\n"), Format("a pickle", _NO_PICKLE)),
    (_begins(b"\x93NUMPY"), Format("an array of numpy (.npy)", f"{_WRITE}; {_FEATURES}")),
    (
        _begins(b"\x89HDF\r\n\x1a\n"),
        Format("an HDF5 file (of Keras, or features)", f"{_WRITE}; {_FEATURES}"),
    ),
    (
        _begins(b"GGUF"),
        Format("a GGUF file (of llama.cpp)", f"submit what it was made of, {COLUMNS}"),
    ),
    (_begins(b"TFL3", at=4), Format("a TensorFlow Lite model", CONVERT)),
    (_begins(b"PAR1"), Format("a Parquet table", "write captions.jsonl, a line for each image")),
    (
        _begins(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"),
        Format("a compressed file", _UNPACK),
    ),
    (
        _begins(b"ustar", at=257),
        Format(
            "a tar",
            "a dataset bundle is added by `prescore datasets add NAME FILE`",
            BUNDLE,
            is_package=True,
        ),
    ),
    (
        _matches(rb"\s*<(!doctype html|html|\?xml)"),
        Format("a web page", "was a page of login or of an error saved in place of the file?"),
    ),
    (
        _matches(rb"(\xef\xbb\xbf)?\s*\[\s*[\[{\]]"),
        Format("a JSON list", "captions go to `prescore submit`", CAPTIONS, is_text=True),
    ),
    (
        _matches(rb'(\xef\xbb\xbf)?\s*\{\s*"[^\n]*\}\s*\n\s*\{'),
        Format(
            "JSON Lines",
            "captions are one list; images with references are captions.jsonl in a bundle",
            is_text=True,
        ),
    ),
    (
        _matches(rb'(\xef\xbb\xbf)?\s*\{\s*["}]'),
        Format(
            "a JSON object",
            "captions are a list; COCO's annotations become a dataset with `prescore convert "
            "coco`, Karpathy's with `prescore convert karpathy`",
            is_text=True,
        ),
    ),
    (_begins(b"\xff\xfe", b"\xfe\xff"), UTF16),
    (_is_onnx, Format("an ONNX model", _ONNX)),
    (_is_text, TEXT),
)
_FOLDERS: tuple[tuple[Callable[[Collection[str]], bool], Format], ...] = (
    (
        lambda names: "captions.jsonl" in names,
        Format("a dataset bundle", "add it by `prescore datasets add NAME FOLDER`", BUNDLE),
    ),
    (
        lambda names: "map.toml" in names,
        Format("a package of a state dict", _SUBMIT, CHECKPOINT),
    ),
    (
        lambda names: "prescore.json" in names,
        Format("an ONNX bundle", _SUBMIT, CHECKPOINT),
    ),
    (
        lambda names: "adapter_config.json" in names,
        Format("an adapter of PEFT", _SUBMIT, CHECKPOINT),
    ),
    (
        lambda names: "config.json" in names,
        Format("a captioner that transformers has saved", _SUBMIT, CHECKPOINT),
    ),
    (lambda names: "saved_model.pb" in names, Format("a SavedModel of TensorFlow", CONVERT)),
    (lambda names: ".metadata" in names, Format("a distributed checkpoint of PyTorch", CONVERT)),
    (
        lambda names: any(name.endswith(".onnx") for name in names),
        Format("a folder with an ONNX model", _ONNX),
    ),
    (
        lambda names: any(name.endswith(".safetensors") for name in names),
        Format("a folder with safetensors files", "name one of its files"),
    ),
    (lambda _: True, Format("a folder", "name a file")),
)


def of_file(stream: IO[bytes], size: int) -> Format | None:
    """The format of a stream of `size` bytes, which is then at its beginning again."""
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    stream.seek(max(0, size - TAIL_BYTES) if head.startswith(b"PK") else 0)
    tail = stream.read(TAIL_BYTES) if head.startswith(b"PK") else b""
    stream.seek(0)
    return of_bytes(head, tail)


def of_bytes(head: bytes, tail: bytes = b"") -> Format | None:
    """The format of a file of which only the first and the last bytes are known."""
    return next((format_ for matches, format_ in _FILES if matches(head, tail)), None)


def of_path(path: Path) -> Format | None:
    """Detect the format of a file or folder; None: not known, or nothing is there."""
    if path.is_dir():
        names = {each.name for _, each in zip(range(MOST_NAMES), path.iterdir(), strict=False)}
        return next(format_ for matches, format_ in _FOLDERS if matches(names))
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return of_file(stream, path.stat().st_size)


def refusal_of_config(config: Mapping[str, object]) -> str | None:
    """The sentence for a model of transformers that no service reads; None where one may."""
    model_type, decoder = config.get("model_type"), config.get("decoder")
    of_decoder = decoder.get("model_type") if isinstance(decoder, dict) else None
    if model_type == "vision-encoder-decoder" and of_decoder not in model_types.DECODERS:
        reason = f"of its decoders, {' and '.join(model_types.DECODERS)} are read, not {of_decoder}"
    elif model_types.is_read(model_type):
        return None
    else:
        reason = model_types.NOT_READ.get(
            str(model_type), "transformers has no captioner of that type"
        )
    return (
        f"expected a model_type that is read (deploy/guide/bring-a-model.md lists "
        f"{len(model_types.READ)}), found {model_type!r:.60}: {reason:.200}. The operator "
        f"may let it in ({model_types.ADMITTING}, of clients too). Two other doors are open: "
        f"make an ONNX bundle of a model of PyTorch with `prescore export`, {COLUMNS}"
    )


def refusal(found: Format | None, wanted: str) -> str | None:
    """The sentence for a file that is not what is wanted; None where it may be, or is not known."""
    if found is None or found.serves == wanted:
        return None
    do = _AS_BUNDLE if wanted == BUNDLE and found.is_text else found.do
    return f"expected {wanted}, found {found.what}: {do}"
