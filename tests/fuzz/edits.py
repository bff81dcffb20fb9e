"""Changes to bytes, by which inputs are made of those that are right.

Each change is a few numbers, so that hypothesis finds the fewest and smallest that fail.
"""

import io
import json
import re
import struct
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

Edit = tuple[str, int, int, int]  # kind, where, how many, which word

_ENDS = 700  # bytes at the beginning and at the end, where most structure is
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[{}\[\]:,]|true|false|null', re.DOTALL)
_TOKENS = 20_000  # bytes of which the tokens are known
_NUMBERS = (0, 1, 2, 7, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1)
WORDS = (
    *(str(number).encode() for number in _NUMBERS),
    *(b"-1", b"-0", b"0.5", b"1e400", b"1e-400", b"NaN", b"Infinity", b"9" * 400, b"01", b"1_0"),
    *(b"true", b"false", b"null", b"{}", b"[]", b'""', b"[[[[", b"[" * 3000, b'{"":' * 2000),
    *(b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0"),
    *(b"\r", b"\n", b"\x1b[2J", "\u2028".encode(), b'"F32"', b'"U16"', b'"BOOL"', b"\\", b'"'),
    *(b"__metadata__", b'"dtype"', b'"shape":[1],', b'"a":1,"a":2,', b"x" * 5000, b"PK\3\4"),
    *(b"../x", b"/etc/passwd", b"a/./b", b"C:\\x", b"captions.jsonl", b"features.safetensors"),
    *(b"prescore.json", b"config.json", b"images/", b"30 path=../../x\n", b"12 size=99\n"),
    *(struct.pack("<Q", number) for number in _NUMBERS),
    *(struct.pack("<H", 0), struct.pack("<H", 65535), struct.pack("<I", 2**32 - 1)),
)
KINDS = ("set", "word", "cut", "drop", "twice", "token", "other token", "no token", "text")

EDITS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 2**16),
        st.integers(1, 64),
        st.integers(0, max(255, len(WORDS) - 1)),
    ),
    max_size=4,
)


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    for edit in edits:
        data = _edited(data, edit)
    return data


def _edited(data: bytes, edit: Edit) -> bytes:
    kind, where, count, which = edit
    if kind in ("token", "other token", "no token", "text"):
        return _by_token(data, edit)
    at = _place(len(data), where)
    word = WORDS[which % len(WORDS)]
    match kind:
        case "set":
            return data[:at] + bytes([which % 256]) + data[at + 1 :]
        case "word":
            over = len(word) if count % 2 else 0
            return data[:at] + word + data[at + over :]
        case "cut":
            return data[:at]
        case "drop":
            return data[:at] + data[at + count :]
        case _:
            return data[:at] + data[at : at + count] * (2 + which % 3) + data[at + count :]


def _by_token(data: bytes, edit: Edit) -> bytes:
    kind, where, _, which = edit
    tokens = [found.span() for found in _TOKEN.finditer(data[:_TOKENS])]
    if not tokens:
        return data
    start, end = tokens[where % len(tokens)]
    match kind:
        case "token":
            put = WORDS[which % len(WORDS)]
        case "other token":
            put = data[slice(*tokens[which % len(tokens)])]
        case "text":
            put = json.dumps(WORDS[which % len(WORDS)].decode("utf-8", "replace")).encode()
        case _:
            put = b""
    return data[:start] + put + data[end:]


def _place(size: int, where: int) -> int:
    """One of three times anywhere, else near one of the ends."""
    at = where // 3 % (size + 1)
    return (at, at % (_ENDS + 1), size - at % (_ENDS + 1))[where % 3] if size > _ENDS else at


def header_edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """A safetensors file whose header is changed, and whose length of it is right."""
    size = int.from_bytes(data[:8], "little")
    header = edited(data[8 : 8 + size], edits)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def entry_edited(data: bytes, which: int, edits: Sequence[Edit]) -> bytes:
    """A safetensors file in which one entry of the metadata is changed, and all else is right."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    told = header["__metadata__"]
    name = sorted(told)[which % len(told)]
    told[name] = edited(told[name].encode(), edits).decode("utf-8", "replace")
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def summed(data: bytes) -> bytes:
    """A tar whose headers have the right checksums, as far as blocks follow one another."""
    blocks, at = bytearray(data), 0
    while at + 512 <= len(blocks) and blocks[at : at + 512].strip(b"\0"):
        blocks[at + 148 : at + 156] = b" " * 8
        total = sum(blocks[at : at + 512])
        blocks[at + 148 : at + 156] = f"{total:06o}\0 ".encode()
        digits = bytes(blocks[at + 124 : at + 136]).strip(b" \0")
        size = int(digits, 8) if re.fullmatch(rb"[0-7]{1,9}", digits) else 0
        at += 512 + -(-size // 512) * 512
    return bytes(blocks)


Files = Mapping[str, bytes]
HOW = ("tar", "pax tar", "zip", "deflated zip")


def packed(files: Sequence[tuple[str, bytes]], how: str) -> bytes:
    """Files as one, in this order, the same name twice too."""
    buffer = io.BytesIO()
    if "tar" in how:
        kind = tarfile.PAX_FORMAT if how == "pax tar" else tarfile.GNU_FORMAT
        with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
            for name, data in files:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return buffer.getvalue()
    method = zipfile.ZIP_DEFLATED if how == "deflated zip" else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in dict(files).items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """The files of a tar or a zip that we made."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {each.filename: archive.read(each) for each in archive.infolist()}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {each.name: _content(tar, each) for each in tar.getmembers() if each.isreg()}


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    found = tar.extractfile(member)
    assert found is not None
    return found.read()


def file_edited(
    files: Files, which: int, edits: Sequence[Edit], inner: str
) -> list[tuple[str, Any]]:
    """The files with one of them changed: its bytes, its header, one entry of it, or its name."""
    listed = sorted(files.items())
    place = which % len(listed)
    name, data = listed[place]
    is_tensors = data[8:9] == b"{"
    if inner == "name":
        made = edited(name.encode(), edits).decode("utf-8", "replace").replace("\0", "") or "x"
        listed[place] = made[:300], data
    elif inner == "header" and is_tensors:
        listed[place] = name, header_edited(data, edits)
    elif inner == "entry" and is_tensors and b"__metadata__" in data:
        listed[place] = name, entry_edited(data, which // 7, edits)
    elif inner == "absent":
        del listed[place]
    elif inner == "again":
        listed.append((name, edited(data, edits)))
    else:
        listed[place] = name, edited(data, edits)
    return listed or [("x", b"")]


INNER = ("bytes", "header", "entry", "name", "absent", "again")
