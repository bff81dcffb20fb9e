"""A folder of pictures becomes part of a dataset bundle."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from service.contract.errors import InvalidBundle, RequestRefused
from service.contract.formats.bundles import pictures, plain_tar
from service.contract.wording import counted

_MOST_NAMED = 10


def check(folder: Path, images: Sequence[str]) -> None:
    """Raise RequestRefused unless the folder has a picture under the name of each image."""
    if not folder.is_dir():
        raise RequestRefused(f"expected a folder of pictures, found none at {folder}")
    wrong = [f"{image!r:.100} ({why})" for image in images if (why := _oddity(folder, image))]
    if wrong:
        more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise RequestRefused(
            f"{folder}: no picture of {len(wrong):,} of {counted(len(images), 'image')}: "
            f"{', '.join(wrong[:_MOST_NAMED])}{more}. "
            "An image's name is its file's, with its ending"
        )


def copy(folder: Path, bundle: Path, images: Iterable[str]) -> None:
    """Copy the pictures of images into a bundle."""
    for image in images:
        source, target = folder / image, bundle / pictures.FOLDER / image
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)


def _oddity(folder: Path, image: str) -> str | None:
    try:
        with (folder / plain_tar.plain_name(image)).open("rb") as stream:
            return pictures.oddity(stream)
    except InvalidBundle:
        return "no name of a file in it"
    except OSError as error:
        return error.strerror
