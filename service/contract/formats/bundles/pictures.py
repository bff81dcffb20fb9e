"""Where a bundle has the pictures of its images: the member `images/NAME` for the image NAME."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import plain_tar
from service.contract.formats.bundles.plain_tar import Member

FOLDER = "images/"


@dataclass(frozen=True, slots=True)
class Place:
    """A picture's bytes: in a file of its own, or in the middle of a tar."""

    path: Path
    start: int
    size: int


def places(bundle: Path, images: Sequence[str]) -> Iterator[Place | str]:
    """For each image the place of its picture, or why it has none."""
    members: Mapping[str, Member] | None = None
    if not bundle.is_dir():
        with bundles.open_tar(bundle) as archive:
            members = plain_tar.members(archive)
    for image in images:
        yield _place(bundle, members, image)


def _place(bundle: Path, members: Mapping[str, Member] | None, image: str) -> Place | str:
    try:
        name = plain_tar.plain_name(FOLDER + image)
        if members is None:
            path = bundles.plain_file(bundle, name)
            found = Place(path, 0, path.stat().st_size)
        elif name in members:
            found = Place(bundle, members[name].start, members[name].size)
        else:
            return f"there is no {name} in the bundle"
    except InvalidBundle as refused:
        return refused.detail
    if found.size > limits.PICTURE_BYTES:
        return f"it has {found.size:,} bytes, more than {limits.PICTURE_BYTES:,}"
    return found
