"""Folders of dataset bundles: other splits are kept, pictures copied."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.contract.errors import InvalidBundle, RequestRefused
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem, files, plain_tar
from service.contract.wording import count_noun
from workers.inference import pictures
from workers.progress import Progress


@dataclass(frozen=True)
class FolderSplits:
    """Splits of a folder: images of other splits, and how many of the one that is written."""

    others: Sequence[BundleItem]
    replaced: int

    def remark(self, split: str) -> str | None:
        if not self.replaced:
            return None
        others = dict.fromkeys(item.split for item in self.others)
        kept = f"; kept: {', '.join(map(repr, others))}" if others else ""
        return f"replaced the split {split!r}, which had {count_noun(self.replaced, 'image')}{kept}"


def find_other_splits(folder: Path, split: str) -> FolderSplits:
    """Raise InvalidBundle where its captions.jsonl cannot be read, so that it is not lost."""
    path = folder / bundles.CAPTIONS
    if not path.exists():
        return FolderSplits((), 0)
    try:
        items = list(bundles.read_items(folder))
    except InvalidBundle as error:
        raise InvalidBundle(f"{path}, {error.detail}") from None
    others = [item for item in items if item.split != split]
    return FolderSplits(others, len(items) - len(others))


def join_splits(items: Iterable[BundleItem], others: Sequence[BundleItem]) -> Iterator[BundleItem]:
    """Raise InvalidBundle for an image that another split has."""
    splits = {item.image: item.split for item in others}
    for item in items:
        if item.image in splits:
            raise InvalidBundle(
                f"image {item.image!r:.100} is in the split {splits[item.image]!r:.60} already"
            )
        yield item
    yield from others


_MOST_NAMED = 10
_SMALL = pictures.PictureFit(
    "nearest", stretched=(8, 8)
)  # whole pictures are decoded, few pixels kept


def check_pictures(folder: Path, images: Sequence[str]) -> None:
    """Raise RequestRefused unless the folder has a picture under the name of each image."""
    if not folder.is_dir():
        raise RequestRefused(f"expected a folder of pictures, found none at {folder}")
    wrong = [f"{image!r:.100} ({why})" for image in images if (why := _oddity(folder, image))]
    if wrong:
        more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise RequestRefused(
            f"{folder}: no picture of {len(wrong):,} of {count_noun(len(images), 'image')}: "
            f"{', '.join(wrong[:_MOST_NAMED])}{more}. "
            "An image's name is its file's, with its ending"
        )


def check_pictures_decode(
    bundle: Path, splits: Iterable[str], sandbox: str, progress: Progress
) -> None:
    """Raise UnusableDataset, which names them, for pictures that cannot be decoded. Raises
    SandboxUnavailable where `sandbox` asks for one and this machine has none.
    """
    every = [item.image for split in splits for item in bundles.read_split(bundle, split)]
    given = files.find_pictures(bundle, every)
    images = [
        one for one, at in zip(every, given, strict=True) if isinstance(at, files.PicturePlace)
    ]
    undecoded: dict[str, str] = {}
    for done, found in enumerate(
        pictures.read_pictures(bundle, images, fit=_SMALL, sandbox=sandbox), 1
    ):
        progress(done, len(images))
        if isinstance(found, pictures.PictureDecodingFailure):
            undecoded[found.image] = found.reason
    if undecoded:
        raise pictures.build_undecoded_error(undecoded)


def copy_pictures(folder: Path, bundle: Path, images: Iterable[str]) -> None:
    """Copy the pictures of images into a bundle."""
    for image in images:
        source, target = folder / image, bundle / files.PICTURES_FOLDER / image
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)


def _oddity(folder: Path, image: str) -> str | None:
    try:
        with (folder / plain_tar.clean_member_name(image)).open("rb") as stream:
            return files.find_picture_fault(stream)
    except InvalidBundle:
        return "no name of a file in it"
    except OSError as error:
        return error.strerror
