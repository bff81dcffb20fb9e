"""A dataset bundle as the bytes of a tar.

The same folder gives the same bytes on any machine, so that the service recognises it: sorted
names, no times, no owners.
"""

import hashlib
import json
import logging
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prescore import foreign, plain_text
from prescore.errors import InvalidArgument
from prescore.files import tars
from prescore.files.bodies import Body, check_format, file_body, translate_read_errors

CAPTIONS = "captions.jsonl"
FEATURES = "features.safetensors"
IMAGES = "images"
Files = Mapping[str, Path]  # by their names in a bundle

_log = logging.getLogger("prescore")


def build_body(bundle: Path) -> Body:
    if bundle.is_dir():
        return tars.build_body(list_files(bundle))
    if bundle.name == CAPTIONS:
        raise InvalidArgument(f"{bundle} is a file of a bundle: name its folder, {bundle.parent}")
    check_format(bundle, foreign.BUNDLE)
    return file_body(bundle)


def list_files(folder: Path) -> Files:
    """The files of a bundle's folder; other files in it are not sent."""
    with translate_read_errors(folder):
        names = _list_names(folder)
        for name in names:
            _check_plain(folder / name)
    return {name: folder / name for name in names}


@contextmanager
def open_captions(bundle: Path) -> Iterator[IO[bytes]]:
    """Lines of captions.jsonl, from a folder or a tar."""
    with translate_read_errors(bundle):
        if bundle.is_dir():
            with (bundle / CAPTIONS).open("rb") as stream:
                yield stream
        else:
            with _open_tar(bundle) as archive, _open_member(bundle, archive) as stream:
                yield stream


def _open_tar(bundle: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(bundle, "r:")
    except tarfile.TarError:
        expected = f"expected a dataset's folder, or a tar, with {CAPTIONS}"
        raise InvalidArgument(f"{bundle}: {expected}; found another file") from None


def _open_member(bundle: Path, archive: tarfile.TarFile) -> IO[bytes]:
    for name in (CAPTIONS, f"./{CAPTIONS}"):
        if name in archive.getnames():
            stream = archive.extractfile(name)
            if stream is not None:
                return stream
    raise InvalidArgument(f"expected {CAPTIONS} in {bundle}, found none")


def list_files_with_pictures(captions: Path, folder: Path) -> Files:
    """List the files of a bundle: these captions, and each image's picture that the folder has
    under its name. Log how many are missing. Raise InvalidArgument if none is there.
    """
    with translate_read_errors(captions), captions.open(encoding="utf-8") as lines:
        images = [json.loads(line)["image"] for line in lines]
    pictures = {
        f"{IMAGES}/{image}": folder / image for image in images if _is_inside(folder, image)
    }
    missing = [image for image in images if f"{IMAGES}/{image}" not in pictures]
    if not pictures:
        raise InvalidArgument(
            f"{folder} has the picture of no image of the dataset: expected such as "
            f"{plain_text.quoted(images[0])}"
        )
    if missing:
        first = plain_text.quoted(missing[0])
        _log.warning("%d of %d images have no picture there: %s", len(missing), len(images), first)
    return {CAPTIONS: captions, **dict(sorted(pictures.items()))}


def _is_inside(folder: Path, image: str) -> bool:
    """The name comes from the service, and may lead nowhere else, by no link either."""
    path = (folder / image).resolve()
    return path.is_file() and path.is_relative_to(folder.resolve())


def compute_content_digest(files: Files, digest_of: Callable[[Path], str]) -> str:
    """The digest by which the service knows the same files in another tar: of what `sha256sum`
    prints of them, in the order of their names.
    """
    lines = [
        f"{digest_of(path).removeprefix('sha256:')}  {name}\n"
        for name, path in sorted(files.items())
    ]
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def _check_plain(path: Path) -> None:
    """Refuse links and devices, like `prescore check`: links can send any file of this machine."""
    if path.is_symlink() or not path.is_file():
        raise InvalidArgument(f"{path} is a link or a device; expected plain files")


def _list_names(folder: Path) -> list[str]:
    """The names of a bundle's files; other files in the folder are not sent."""
    top = {path.name for path in folder.iterdir()}
    if CAPTIONS not in top:
        raise InvalidArgument(f"expected {CAPTIONS} in {folder}, found none")
    if others := top - {CAPTIONS, FEATURES, IMAGES}:
        named = plain_text.quoted(", ".join(sorted(others)[:5]))
        _log.warning("left out of the bundle: %s", named)
    names = [name for name in (CAPTIONS, FEATURES) if name in top]
    return sorted(names + (_list_images(folder) if IMAGES in top else []))


def _list_images(folder: Path) -> list[str]:
    images = folder / IMAGES
    if images.is_symlink() or not images.is_dir():
        return [IMAGES]  # which is refused
    return [
        path.relative_to(folder).as_posix()
        for path in images.rglob("*")
        if path.is_symlink() or not path.is_dir()
    ]
