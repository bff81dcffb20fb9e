"""Reads a tar of plain files without extracting it.

The standard library is used only to decode single header blocks, since the file may be an attack:
its reader allocates what a header claims, follows chains of extended headers until the stack is
full, needs quadratic time for some of them, and takes a damaged header for the end of the tar.
"""

import io
import math
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from prescore import foreign
from service.contract.errors import InvalidBundle

BLOCK = 512
MAX_EXTENDED_BYTES = 100_000  # a long name, times, attributes: usually about 100
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE)
_EXTENDED = (*_PAX, tarfile.GNUTYPE_LONGNAME)
_SIZE = re.compile(rb" *[0-7]*[ \0]*|\x80.{11}", re.DOTALL)  # octal, or binary for large sizes
_DIGITS = re.compile(rb"[0-9]{1,18}")
_REINTERPRET = (b"GNU.sparse", b"hdrcharset")  # pax records that change the meaning of other fields

Records = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class TarMember:
    start: int
    size: int


def read_tar_members(
    stream: IO[bytes], at_most: float = math.inf, *, whole: float | None = None
) -> dict[str, TarMember]:
    """Names and places of all files; links, devices and sparse files are refused, and more entries
    than `at_most`. `whole`: the bytes of a tar of which the stream has the first ones; the files
    are those whose headers are there.
    """
    found: dict[str, TarMember] = {}
    for kind, name, member in _entries(stream, at_most, whole):
        if kind == tarfile.DIRTYPE and member.size == 0:
            continue
        if kind not in _PLAIN or name == ".":
            raise InvalidBundle(
                f"{name!r:.200} is a link, a device or sparse; expected plain files"
            )
        if name in found:
            raise InvalidBundle(f"{name!r:.200} is in the bundle twice")
        if len(found) == at_most:
            raise InvalidBundle(f"expected at most {at_most} files in the bundle, found more")
        found[name] = member
    return found


def check_tar_beginning(stream: IO[bytes]) -> None:
    """Refuse what does not begin as a tar does, as what it is where that is known."""
    block = _read(stream, 0, BLOCK)
    if block == bytes(BLOCK):
        return
    try:
        _header(block, 0)
    except InvalidBundle as refused:
        found = foreign.of_file(stream, stream.seek(0, os.SEEK_END))
        raise InvalidBundle(foreign.refusal(found, foreign.BUNDLE) or refused.detail) from None


def open_tar_member(stream: IO[bytes], member: TarMember) -> IO[bytes]:
    """The member's bytes as a seekable stream, while `stream` is open."""
    return io.BufferedReader(_TarMemberStream(stream, member))


def clean_member_name(name: str) -> str:
    """The name without `./`; a name that could lead outside the folder is refused."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or not name.isprintable():
        raise InvalidBundle(f"{name!r:.200} is not a name inside the bundle")
    return parts.as_posix()


class _TarMemberStream(io.RawIOBase):
    def __init__(self, stream: IO[bytes], member: TarMember) -> None:
        self._stream = stream
        self._member = member
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._member.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        left = max(0, self._member.size - self._at)
        self._stream.seek(self._member.start + self._at)
        found: int = self._stream.readinto(memoryview(buffer)[:left])  # type: ignore[attr-defined]
        self._at += found
        return found


def _entries(
    stream: IO[bytes], at_most: float, whole: float | None
) -> Iterator[tuple[bytes, str, TarMember]]:
    """Type, name and place of each entry, with what its extended header says."""
    there = stream.seek(0, os.SEEK_END)
    file_bytes = there if whole is None else whole
    records: Records | None = None
    position = headers = 0
    while (block := _read(stream, position, BLOCK)) != bytes(BLOCK):
        if whole is not None and len(block) < BLOCK:
            return
        headers += 1
        if headers > 2 * at_most:  # a file may have an extended one too
            raise InvalidBundle(f"expected at most {at_most} files in the bundle, found more")
        header = _header(block, position)
        member = TarMember(position + BLOCK, _size(block, records, position))
        position = member.start + -(-member.size // BLOCK) * BLOCK
        if position > file_bytes:
            raise InvalidBundle(
                f"the tar is cut off: {header.name!r:.200} ends at byte {position}, "
                f"the file has {file_bytes}"
            )
        if header.type in _EXTENDED:
            if whole is not None and position > there:
                return
            records = _extended(stream, header.type, member, before=records)
        else:
            yield header.type, _name(header, records), member
            records = None
    if records is not None:
        raise InvalidBundle(
            "expected a file after the last extended header, found the end of the tar"
        )


def _read(stream: IO[bytes], position: int, size: int) -> bytes:
    stream.seek(position)
    return stream.read(size)


def _header(block: bytes, position: int) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise InvalidBundle(
            f"expected an uncompressed, complete tar, found {error} at byte {position}"
        ) from None


def _size(block: bytes, records: Records | None, position: int) -> int:
    field = block[124:136]
    if records and b"size" in records:
        field = records[b"size"]
        if _DIGITS.fullmatch(field):
            return int(field)
    elif _SIZE.fullmatch(field):
        binary = field.startswith(b"\x80")
        return int.from_bytes(field[1:]) if binary else int(field.strip(b" \0") or b"0", 8)
    raise InvalidBundle(f"expected the size of the file at byte {position}, found {field!r:.100}")


def _name(header: tarfile.TarInfo, records: Records | None) -> str:
    name = header.name
    if records and b"path" in records:
        name = records[b"path"].decode("utf-8", "surrogateescape")
    return clean_member_name(name)


def _extended(
    stream: IO[bytes], kind: bytes, member: TarMember, before: Records | None
) -> Records | None:
    """An extended header's records for the next file; a global one may change no name or size."""
    if before is not None or member.size > MAX_EXTENDED_BYTES:
        raise InvalidBundle(
            f"expected one extended header for a file, of at most {MAX_EXTENDED_BYTES} bytes, "
            f"found " + (f"{member.size} bytes" if before is None else "a second one")
        )
    data = _read(stream, member.start, member.size)
    if kind == tarfile.GNUTYPE_LONGNAME:
        return {b"path": data.split(b"\0")[0]}
    records = _pax_records(data)
    odd = [key for key in records if key.startswith(_REINTERPRET)]
    if kind == tarfile.XGLTYPE:
        odd += [key for key in (b"path", b"size") if key in records]
    if odd:
        raise InvalidBundle(f"expected plain files, found the pax record {odd[0]!r:.100}")
    return None if kind == tarfile.XGLTYPE else records


def _pax_records(data: bytes) -> Records:
    r"""Parse records like `20 path=some/name\n`; the number is the length of the record."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        digits = data[at : at + 8].partition(b" ")[0]
        end = at + int(digits) if _DIGITS.fullmatch(digits) else at
        key, _, value = data[at + len(digits) + 1 : end].partition(b"=")
        if not key or not value.endswith(b"\n") or end > len(data):
            raise InvalidBundle(f"expected a pax record, found {data[at : at + 40]!r}")
        records[key] = value[:-1]
        at = end
    return records
