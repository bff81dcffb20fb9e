"""Checkpoints, features and tars as bytes, made with json and struct alone: a second implementation
of the formats in deploy/guide/file-formats.md. Also the checks that all tests of refusals share.
"""

import atexit
import copy
import functools
import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.contract.errors import PrescoreError

WORDS = ("<edge>", "<unk>", "a", "cat", "sat")
ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U32": 4, "U16": 2}
ENCODER = '{"name": "vgg", "digest": "sha256:0"}'


def safetensors_file(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    """`header` is JSON, as bytes or a value; `length` is the header length that the file claims."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(dtype: object, shape: object, start: object, end: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def laid_out(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> tuple[dict[str, object], bytes]:
    """Header entries without gaps, and data of zeros for them."""
    header: dict[str, object] = {}
    end = 0
    for name, (dtype, shape) in tensors.items():
        start, end = end, end + math.prod(shape) * ITEM_BYTES[dtype]
        header[name] = entry(dtype, list(shape), start, end)
    return header, bytes(end)


def with_changes(document: Mapping[str, Any], **changes: object) -> dict[str, Any]:
    """A copy with other values at these places, `look__file`; None removes one."""
    found = copy.deepcopy(dict(document))
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = found
        for name in parents:
            place = place[name]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return found


def checkpoint_shapes(architecture: str, cell: str, s: int, D: int, V: int) -> dict[str, list[int]]:
    """A second implementation of the table of shapes in deploy/guide/file-formats.md."""
    i = 2 * s if architecture == "par" else s
    o = 2 * s if architecture == "merge" else s
    shapes = {
        "image.weight": [D, s],
        "image.bias": [s],
        "embedding.weight": [V, s],
        "output.weight": [o, V],
        "output.bias": [V],
    }
    if architecture in ("par", "merge"):
        shapes["initial"] = [s]
    if cell == "gru":
        shapes |= {"gates.weight": [i + s, 2 * s], "gates.bias": [2 * s]}
        shapes |= {"candidate.weight": [i + s, s], "candidate.bias": [s]}
    else:
        shapes |= {"gates.weight": [i + s, 4 * s], "gates.bias": [4 * s]}
    return shapes


def checkpoint(
    architecture: str = "init",
    cell: str = "gru",
    words: Sequence[str] = WORDS,
    tensors: Mapping[str, Sequence[int] | None] | None = None,
    dtypes: Mapping[str, str] | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> bytes:
    """A valid file of size 2 and 3 features, changed by the arguments; None removes an entry."""
    shapes = checkpoint_shapes(architecture, cell, 2, 3, len(words)) | dict(tensors or {})
    typed = {
        name: ((dtypes or {}).get(name, "F32"), shape)
        for name, shape in shapes.items()
        if shape is not None
    }
    described = {
        "prescore": "1",
        "architecture": architecture,
        "config": json.dumps({"cell": cell, "size": 2, "feature_size": 3}),
        "vocabulary": json.dumps(words),
        "tokenizer": "blanks",
        "encoder": ENCODER,
        **(metadata or {}),
    }
    header, data = laid_out(typed)
    header["__metadata__"] = {name: text for name, text in described.items() if text is not None}
    return safetensors_file(header, data)


def features(
    ids: object = ("a.jpg", "b.jpg"),
    tensors: Mapping[str, tuple[str, Sequence[int]]] | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> bytes:
    header, data = laid_out(tensors or {"features": ("F16", (2, 3))})
    described = {"ids": json.dumps(ids), "encoder": ENCODER, **(metadata or {})}
    header["__metadata__"] = {name: text for name, text in described.items() if text is not None}
    return safetensors_file(header, data)


def line(image: object = "a.jpg", references: object = ("a cat",), **more: object) -> bytes:
    """A line of captions.jsonl."""
    fields = {"image": image, "split": "test", "references": references, **more}
    return json.dumps(fields).encode() + b"\n"


def lines(items: Iterable[bytes]) -> bytes:
    return b"".join(items)


def tar_block(name: bytes, size: int, kind: bytes = b"0", link: bytes = b"") -> bytes:
    """A ustar header; a size that octal digits cannot hold is written in base 256."""
    octal = 0 <= size < 8**11
    number = b"%011o\0" % size if octal else _base_256(size)
    fields = [
        name.ljust(100, b"\0")[:100],
        *(b"0000644\0", b"0000000\0", b"0000000\0"),
        number,
        b"00000000000\0",
        b" " * 8,
        kind,
        link.ljust(100, b"\0"),
        b"ustar\00000",
    ]
    return with_checksum(b"".join(fields).ljust(512, b"\0"))


def with_checksum(block: bytes) -> bytes:
    blank = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blank) + block[156:]


def tar_entry(name: bytes, data: bytes = b"", kind: bytes = b"0", link: bytes = b"") -> bytes:
    return tar_block(name, len(data), kind, link) + data + bytes(-len(data) % 512)


def tar(*entries: bytes) -> bytes:
    return b"".join(entries) + bytes(1024)


def pax_record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while len(b"%d" % length) + len(key) + len(value) + 3 != length:
        length = len(b"%d" % length) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (length, key, value)


def _base_256(size: int) -> bytes:
    if size >= 0:
        return b"\x80" + size.to_bytes(11, "big")
    return b"\xff" + (256**11 + size).to_bytes(11, "big")


def refused(act: Callable[[], object], error: type[PrescoreError], *words: str) -> PrescoreError:
    """Check that `act` raises exactly `error`, with a short text that has all `words`."""
    with pytest.raises(PrescoreError) as caught:
        act()
    assert type(caught.value) is error, caught.value.detail
    for word in words:
        assert word in caught.value.detail
    assert len(caught.value.detail.encode()) < 1000
    return caught.value


_SERVER = """
import json, os, resource, sys, time
from pathlib import Path
from service.contract import errors
from service.contract.formats import bundles, checkpoint_header, columns_values

def read_all(path):
    for _ in bundles.read_items(path):
        pass
    bundles.read_features_header(path)

ACTS = {"checkpoint": checkpoint_header.read_checkpoint_header, "bundle": read_all}
ACTS["columns"] = columns_values.validate_columns

def told(what, path, more):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    error = None
    try:
        ACTS[what](Path(path))
    except errors.PrescoreError as caught:
        error = caught
    seconds = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return [type(error).__name__, str(error), seconds, grown * 1024]

for line in sys.stdin:
    child = os.fork()
    if not child:
        print(json.dumps(told(*json.loads(line))), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("it died: see stderr", flush=True)
"""


@functools.cache
def _server() -> "subprocess.Popen[str]":
    """Has imported what reads, and forks for each question; ends when its questions do."""
    command = [sys.executable, "-c", _SERVER]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    atexit.register(server.communicate)
    return server


def cost_of_reading(what: str, path: Path, limit: int) -> tuple[str, str, float, int]:
    """Read a file in a new process: error's name and text, CPU seconds, growth of resident bytes.

    `what` is "checkpoint", "bundle" or "columns". The process may use `limit` bytes of address
    space more than after its imports; a MemoryError fails here.
    """
    server = _server()
    assert server.stdin
    assert server.stdout
    print(json.dumps([what, str(path), limit]), file=server.stdin, flush=True)
    answer = server.stdout.readline()
    assert answer.startswith("["), answer
    name, text, seconds, grown = json.loads(answer)
    return name, text, seconds, grown
