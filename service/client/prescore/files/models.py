"""A checkpoint as the bytes that are sent: a file, or the files of a model as a tar."""

import json
import logging
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from prescore import foreign, plain_text
from prescore.errors import InvalidArgument
from prescore.files import tars
from prescore.files.bodies import Body, check_checkpoint, file_body, translate_read_errors

_TENSORS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
_OF_TRANSFORMERS, _TOKENIZER = "config.json", "tokenizer.json"
_OF_ADAPTER, _ADAPTER = "adapter_config.json", "adapter_model.safetensors"
# A file that tells of which model the files beside it are, and the endings of those that are sent.
# The first that is there counts; what transformers has saved may have pickles beside it, of
# optimizers and of the same weights.
MARKS: Mapping[str, tuple[str, ...]] = {
    "map.toml": (".json", ".toml", *_TENSORS),
    "prescore.json": (".json", ".onnx"),
    _OF_ADAPTER: (_OF_ADAPTER, _ADAPTER),  # the base's files are beside it, or its tokenizer's
    _OF_TRANSFORMERS: (".jinja", ".json", ".safetensors"),  # templates of chats are .jinja
}
_MOST_JSON = 4_000_000  # bytes of config.json; the service reads no more
_ZIP = b"PK"

_log = logging.getLogger("prescore")


def check_model(path: Path) -> None:
    """Raise if the file or folder is known to be neither a checkpoint nor a package of one."""
    names = _list_file_names(path)
    mark = next((mark for mark in MARKS if mark in names), None)
    if mark is None:
        _check_folder(path)
        check_checkpoint(path)
    has_weights = any(name.endswith(".safetensors") for name in names)
    if mark == _OF_TRANSFORMERS and not (_TOKENIZER in names and has_weights):
        raise InvalidArgument(
            f"{path}: expected {_TOKENIZER} and model.safetensors beside {mark}, as "
            "save_pretrained of model, tokenizer and image processor writes them; found "
            f"{plain_text.quoted(', '.join(sorted(names)[:10]))}"
        )
    if mark == _OF_TRANSFORMERS:
        _check_model_type(path)
    if mark == _OF_ADAPTER and _ADAPTER not in names:
        raise InvalidArgument(
            f"{path}: expected {_ADAPTER} beside {mark}, as save_pretrained of PEFT writes it; "
            f"found {plain_text.quoted(', '.join(sorted(names)[:10]))}"
        )


def _check_model_type(path: Path) -> None:
    """Raise for a model of a kind that no service reads. What else may be wrong with its
    configuration the service tells.
    """
    try:
        with translate_read_errors(path):
            config = json.loads(_read_config(path))
    except (ValueError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error):
        return
    if isinstance(config, dict):
        refusal = foreign.refusal_of_config(config)
        if refusal is not None:
            raise InvalidArgument(f"{path}: {_OF_TRANSFORMERS}: {refusal}")


def _read_config(path: Path) -> bytes:
    """config.json of a model: a folder, or a tar or a zip of one."""
    if path.is_dir():
        with (path / _OF_TRANSFORMERS).open("rb") as stream:
            return stream.read(_MOST_JSON)
    inside = (name for name in _list_members(path) if PurePosixPath(name).name == _OF_TRANSFORMERS)
    name = min(inside, key=len)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
            return stream.read(_MOST_JSON)
    with tarfile.open(path, "r:") as tar:
        file = tar.extractfile(name)
        return b"" if file is None else file.read(_MOST_JSON)


def _check_folder(path: Path) -> None:
    """Raise for a folder in which there is nothing that may be a model."""
    format_ = foreign.of_path(path) if path.is_dir() else None
    if format_ is not None and format_.what == "a folder":
        *marks, last = MARKS
        raise InvalidArgument(
            f"{path}: expected a model: found a folder with no .safetensors file, no "
            f"{', '.join(marks)} or {last} in it or in the folders in it; name a file, or a folder "
            "that is a model"
        )


def is_package(path: Path) -> bool:
    return not MARKS.keys().isdisjoint(_list_file_names(path))


def _list_file_names(path: Path) -> set[str]:
    """The names of files without the folders that they are in."""
    with translate_read_errors(path):
        return {PurePosixPath(name).name for name in _list_members(path)}


def build_body(path: Path) -> Body:
    check_model(path)
    if not path.is_dir():
        return file_body(path)
    names = [each.name for each in path.iterdir() if each.is_file()]
    endings = next(MARKS[mark] for mark in MARKS if mark in names)
    names_sent = [name for name in names if name.endswith(endings)]
    if others := sorted({*names} - {*names_sent}):
        _log.warning("left out of the package: %s", plain_text.quoted(", ".join(others[:5])))
    return tars.build_body({name: path / name for name in names_sent})


def _list_members(path: Path) -> Iterable[str]:
    """The names of a folder's, a tar's or a zip's files; none of another file."""
    if path.is_dir():
        return [each.name for each in path.iterdir()]
    with path.open("rb") as stream:
        is_zip = stream.read(len(_ZIP)) == _ZIP
    format_ = foreign.of_path(path)
    try:
        if is_zip:
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()
        if format_ is not None and format_.is_package:
            with tarfile.open(path, "r:") as archive:
                return archive.getnames()
    except (tarfile.TarError, zipfile.BadZipFile, ValueError):
        pass
    return []
