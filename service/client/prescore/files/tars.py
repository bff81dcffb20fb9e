"""Files as the bytes of a tar. The same files give the same bytes on any machine: sorted names, no
times, no owners.
"""

import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.files.reading import Body, read_exactly, readable

END = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(frozen=True)
class _Member:
    path: Path
    header: bytes
    size: int

    @property
    def padding(self) -> int:
        return -self.size % tarfile.BLOCKSIZE

    @property
    def bytes_in_all(self) -> int:
        return len(self.header) + self.size + self.padding


def body(files: Mapping[str, Path]) -> Body:
    """The files under these names."""
    members = [_member(files[name], name) for name in sorted(files)]
    size = sum(member.bytes_in_all for member in members) + len(END)
    return Body(size, lambda: _chunks(members))


def _chunks(members: Sequence[_Member]) -> Iterator[bytes]:
    for member in members:
        yield member.header
        yield from read_exactly(member.path, member.size)
        yield bytes(member.padding)
    yield END


def _member(path: Path, name: str) -> _Member:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name!r} is not a name in Unicode") from None
    info = tarfile.TarInfo(name)  # its times and owners are zero
    with readable(path):
        info.size = path.stat().st_size
    return _Member(path, info.tobuf(tarfile.PAX_FORMAT, "utf-8"), info.size)
