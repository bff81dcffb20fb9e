"""`python -m service.stored.judge_process`: the process that judges uploads, one after the other.

It reads questions as lines of JSON and answers each with a line. A file may be an attack, so each
question has a child of its own, which has no secrets and a limit of memory. Where the kernel can do
it, the child is confined to the question's files, the libraries and a folder for what SQLite sorts:
it starts no process and opens no socket. All of them may be killed at any time. The child ends with
this process, and this one with its parent, whose end of the pipe is watched even while a child
judges, and with the thread of the parent that started it, even while it is stopped.
"""

import errno
import json
import math
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from select import POLLIN, poll
from typing import Any, NoReturn

import prescore
import service
from service.contract import limits
from service.contract.errors import InvalidBundle, RequestRefused
from service.contract.formats import bundles, columns_header, columns_values, model_formats
from service.contract.formats.bundles import FeaturesHeader, files, plain_tar, validation
from service.contract.formats.bundles.files import compute_content_digests
from service.contract.formats.columns_header import ColumnsHeader
from service.engine import presence
from service.kernel import confinement
from service.kernel.confinement import Confinement
from service.kernel.process_limits import ChildLimits
from service.stored import caption_files, judges, splits

Question = Mapping[str, Any]
_OUTPUTS = {"dataset": "images", "images": "images", "content": "captions"}
_PACKAGES = tuple(Path(each.__path__[0]) for each in (service, prescore))
_CHUNK, _LONGEST_ANSWER = 1 << 16, 1 << 26  # bytes
_POLITE = 5  # of `nice`: whoever asks for a status comes first


def judge_checkpoint(asked: Question) -> dict[str, Any]:
    """The facts of a checkpoint. `bytes`: of the whole file, if known; packages need all of it."""
    path, length = Path(asked["path"]), asked["bytes"]
    with path.open("rb") as stream:
        if model_formats.may_be_package(stream):
            if path.stat().st_size == length:
                return model_formats.read_package_facts(path)
            model_formats.check_package_beginning(
                path, stream, math.inf if length is None else length
            )
            return judges.NOT_YET
        return model_formats.read_file_facts(stream, math.inf if length is None else length)


def judge_columns_header(asked: Question) -> dict[str, Any]:
    """The facts in the header of columns that were brought; `bytes` as for a checkpoint."""
    with Path(asked["path"]).open("rb") as stream:
        length = asked["bytes"]
        return _of_columns(
            columns_header.parse_columns_header(stream, math.inf if length is None else length)
        )


def judge_columns(asked: Question) -> dict[str, Any]:
    """The facts of columns that were brought, all values of which are looked at."""
    return _of_columns(columns_values.validate_columns(Path(asked["path"])))


def _of_columns(found: ColumnsHeader) -> dict[str, Any]:
    return {
        "images": len(found.images),
        "references": found.references,
        "tokens": found.tokens,
        "tokenizer": found.tokenizer,
        "words": found.words,
        "pieces": found.pieces,
        "model": found.model,
        "vocabulary_size": None if found.vocabulary is None else len(found.vocabulary),
        "top": found.top,
        "entropy": "entropy" in found.tensors,
    }


def compare_columns(asked: Question) -> dict[str, Any]:
    """The first difference of columns from a split in `images`, and their unknown words."""
    path = Path(asked["path"])
    items = splits.open_split(Path(asked["images"]), asked["split"]).items
    found = columns_header.read_columns_header(path)
    return {
        "difference": columns_values.find_split_difference(path, items, len(items)),
        "unknown": columns_values.count_references_with_unknown(path, found),
        "references": found.references,
    }


def inspect_captions(asked: Question) -> dict[str, Any]:
    """The captions in a file, by name `name`, and how they fit the split `of` in `images`."""
    split = splits.open_split(Path(asked["images"]), asked["split"])
    return caption_files.inspect_captions(Path(asked["path"]), asked["name"], split, asked["of"])


def judge_dataset(asked: Question) -> dict[str, Any]:
    """The facts of a bundle; writes the file of its images to `images`."""
    path = Path(asked["path"])
    with _written(path, Path(asked["images"])) as writer:
        found = validation.validate_bundle(path, writer)
    return {"splits": found.splits, "features": found.features and _of_features(found.features)}


def _of_features(found: FeaturesHeader) -> dict[str, Any]:
    facts = {"encoder": found.encoder.model_dump(), "size": found.size}
    places = {"inputs": found.inputs, "places": found.places}
    return facts if found.inputs == "features" else {**facts, **places}


def describe_content(asked: Question) -> dict[str, Any]:
    """The content of a bundle; writes a copy of its captions.jsonl to `captions` if asked."""
    captions = asked["captions"]
    with nullcontext() if captions is None else Path(captions).open("wb") as copy:
        return asdict(compute_content_digests(Path(asked["path"]), copy))


def check_beginning(asked: Question) -> dict[str, Any]:
    """Refuse a file that does not begin as a tar does."""
    with Path(asked["path"]).open("rb") as stream:
        plain_tar.check_tar_beginning(stream)
    return {}


def write_images(asked: Question) -> dict[str, Any]:
    """Write the file of a stored dataset's images to `images`."""
    path = Path(asked["path"])
    with (
        _written(path, Path(asked["images"])) as writer,
        files.open_captions(path) as stream,
    ):
        for _ in bundles.parse_items(stream, writer):
            pass
    return {}


QUESTIONS: dict[str, Callable[[Question], dict[str, Any]]] = {
    "checkpoint": judge_checkpoint,
    "columns header": judge_columns_header,
    "columns": judge_columns,
    "columns of a split": compare_columns,
    "captions": inspect_captions,
    "beginning": check_beginning,
    "dataset": judge_dataset,
    "content": describe_content,
    "images": write_images,
}


@contextmanager
def _written(bundle: Path, path: Path) -> Iterator[splits.SplitWriter]:
    path.write_bytes(b"")  # a judge that died may have written some
    with closing(splits.SplitWriter(path)) as writer:
        yield writer
        twice = writer.end()
    if twice is not None:
        with files.open_captions(bundle) as stream:
            splits.refuse_duplicate(bundles.parse_items(stream, _IgnoredNames()), twice)


class _IgnoredNames:
    def add(self, number: int, item: bundles.BundleItem) -> None: ...


def answer_question(asked: Question) -> dict[str, Any]:
    try:
        return {"facts": QUESTIONS[asked["question"]](asked)}
    except RequestRefused as refused:
        return {"refused": type(refused).__name__, "detail": refused.detail, "at": refused.pointer}
    except MemoryError:
        kind = judges.TOO_MUCH.get(asked["question"], InvalidBundle)
        detail = f"judging this file takes more than {limits.JUDGING_BYTES >> 20} MB of memory"
        return {"refused": kind.__name__, "detail": detail, "at": None}
    except OSError as error:
        return {"errno": error.errno, "detail": error.strerror}
    except sqlite3.OperationalError as error:
        full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        return {"errno": errno.ENOSPC if full else errno.EIO, "detail": str(error)}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.JUDGING_BYTES, limits.JUDGING_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    presence.end_with_parent()
    os.nice(_POLITE)
    is_confined = confinement.explain_missing_sandbox() is None
    while line := sys.stdin.readline():
        answer = _answer_in_child(json.loads(line), is_confined=is_confined)
        if answer is None:
            return  # its parent asks another one
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.flush()


def _answer_in_child(asked: Question, *, is_confined: bool) -> bytes | None:
    """The one line that a child has written; None where it died, wrote too much, or has to end. Its
    file may have taken it over: so it is ended, and has no pipe to the parent of this process.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, sys.stdout.fileno())
        for each in (reads, writes, sys.stdin.fileno()):
            os.close(each)
        _answer_and_exit(asked, is_confined=is_confined)
    os.close(writes)
    waiting = poll()
    waiting.register(reads, POLLIN)
    waiting.register(sys.stdin.fileno(), 0)  # the kernel tells of its end, whatever is asked
    answer = bytearray()
    try:
        while b"\n" not in answer:
            if sys.stdin.fileno() in dict(waiting.poll()):
                return None
            data = os.read(reads, _CHUNK)
            answer += data
            if not data or len(answer) > _LONGEST_ANSWER:
                return None
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return bytes(answer.partition(b"\n")[0])


def _answer_and_exit(asked: Question, *, is_confined: bool) -> NoReturn:
    try:
        presence.end_with_parent()
        if is_confined:
            _confine(asked)
        sys.stdout.write(json.dumps(answer_question(asked)) + "\n")
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  nothing of the parent's may run here
        traceback.print_exc()
    os._exit(0)


def _confine(asked: Question) -> None:
    """Confine this process to the files of a question."""
    output = _OUTPUTS.get(asked["question"])
    given = {name: asked[name] for name in ("path", "images", "captions") if asked.get(name)}
    writes = [Path(given.pop(output))] if output in given else []
    for path in writes:
        path.touch()
    Confinement(
        (*map(Path, given.values()), *_PACKAGES),
        tuple(writes),
        (Path(tempfile.gettempdir()),),
        limits=ChildLimits(cpu_seconds=math.ceil(limits.JUDGING_SECONDS)),
    ).apply()


if __name__ == "__main__":
    main()
