"""All files of a bundle, whose names are read once."""

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import plain_tar

Open = Callable[[str], AbstractContextManager[IO[bytes]]]


@contextmanager
def files(path: Path, at_most: float = math.inf) -> Iterator[tuple[set[str], Open]]:
    """The names of a bundle's files, and what opens one; a tar with more is refused."""
    if path.is_dir():
        yield set(bundles.member_names(path)), lambda name: bundles.open_member(path, name)
        return
    with bundles.open_tar(path) as archive:
        members = plain_tar.members(archive, at_most)

        def opened(name: str) -> IO[bytes]:
            if name not in members:
                raise InvalidBundle(_absent(name, members))
            return plain_tar.open_member(archive, members[name])

        yield set(members), opened


def _absent(name: str, members: Collection[str]) -> str:
    said = f"expected a file {name!r:.200} in the bundle, found none"
    inner = next((each for each in members if each.endswith(f"/{name}")), None)
    if inner is None:
        return said
    folder = inner.removesuffix(f"/{name}")
    return f"{said} but one in the folder {folder!r:.200}: `tar -cf bundle.tar -C FOLDER .`"
