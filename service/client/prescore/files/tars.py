"""Files as the bytes of a tar. The same files give the same bytes on any machine: sorted names, no
times, no owners.
"""

import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.files.bodies import Body, read_exactly, translate_read_errors

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


def build_body(files: Mapping[str, Path]) -> Body:
    """The files under these names."""
    members = [_build_member(files[name], name) for name in sorted(files)]
    size = sum(member.bytes_in_all for member in members) + len(END)
    return Body(size, lambda start=0: _read_chunks(members, start))


def _read_chunks(members: Sequence[_Member], start: int) -> Iterator[bytes]:
    """The tar's bytes from `start` on."""
    for member in members:
        yield from filter(None, _read_member(member, start))
        start = max(0, start - member.bytes_in_all)
    yield END[start:]


def _read_member(member: _Member, start: int) -> Iterator[bytes]:
    """Files that are before `start` are not read."""
    if start >= member.bytes_in_all:
        return
    before = max(0, start - len(member.header))
    yield member.header[start:]
    yield from read_exactly(member.path, member.size, min(before, member.size))
    yield bytes(member.padding)[max(0, before - member.size) :]


def _build_member(path: Path, name: str) -> _Member:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name!r} is not a name in Unicode") from None
    info = tarfile.TarInfo(name)  # its times and owners are zero
    with translate_read_errors(path):
        info.size = path.stat().st_size
    return _Member(path, info.tobuf(tarfile.PAX_FORMAT, "utf-8"), info.size)
