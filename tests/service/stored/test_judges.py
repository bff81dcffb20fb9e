"""Processes that judge uploads: what happens to one of them happens to one upload."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from helpers.contract_files import checkpoint, line, tar, tar_entry
from service.contract.errors import InvalidBundle, InvalidCheckpoint, ServiceUnavailable
from service.stored import judges
from service.stored.judges import Judges

pytestmark = pytest.mark.processes


@pytest.fixture
def some():
    with closing(Judges(count=2)) as judges:
        yield judges


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint())
    return path


def _ask(some, path, nobody=lambda: False):
    return some.ask("checkpoint", nobody, path=str(path), bytes=path.stat().st_size)


def _pids(some):
    return [judge._process.pid for idle in some._idle.values() for judge in idle]


def test_a_file_is_judged_and_the_process_stays(some, path):
    assert _ask(some, path).result(30)["architecture"]
    first = _pids(some)
    path.write_bytes(b"PK\3\4" * 10)
    with pytest.raises(InvalidCheckpoint, match="found a zip"):
        _ask(some, path).result(30)
    assert _pids(some) == first
    for pid in first:  # one that died meanwhile is replaced
        os.kill(pid, signal.SIGKILL)
    path.write_bytes(checkpoint())
    assert _ask(some, path).result(30)


def _waiting(some, tmp_path, nobody=lambda: False):
    """A question whose judge waits for a file that never comes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    return some.ask("checkpoint", nobody, path=str(pipe), bytes=10)


def _start_both(some, path, tmp_path):
    """Start both processes: one is asked while the other one waits."""
    answer = _waiting(some, tmp_path)
    assert _ask(some, path).result(60)
    (tmp_path / "pipe").open("wb").close()
    with pytest.raises(OSError, match="None"):  # a pipe cannot be read in parts
        answer.result(60)
    (tmp_path / "pipe").unlink()


def test_who_leaves_has_the_process_ended(some, path, tmp_path):
    left = threading.Event()
    answer = _waiting(some, tmp_path, left.is_set)
    left.set()
    with pytest.raises(ServiceUnavailable):
        answer.result(10)
    assert _ask(some, path).result(30)


def test_what_takes_too_long_is_refused_and_others_are_judged(some, path, tmp_path, monkeypatch):
    _start_both(some, path, tmp_path)  # which takes longer than one second beside other work
    monkeypatch.setattr(judges, "_SHORT_SECONDS", 1.0)
    answer = _waiting(some, tmp_path)
    assert _ask(some, path).result(30)
    with pytest.raises(InvalidCheckpoint, match="more than 1 seconds"):
        answer.result(10)


def test_closing_ends_what_is_judged(some, tmp_path):
    answer = _waiting(some, tmp_path)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(some.close)
        with pytest.raises(ServiceUnavailable):
            answer.result(10)


def test_what_needs_too_much_memory_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "_COMMAND", [*judges._COMMAND[:1], "-c", _SMALL])
    header = 99_000_000
    rows = header.to_bytes(8, "little") + b"{".ljust(header, b"a")
    bundle = tmp_path / "bundle.tar"
    bundle.write_bytes(
        tar(tar_entry(b"captions.jsonl", line()), tar_entry(b"features.safetensors", rows))
    )
    asked = {"path": str(bundle), "images": str(tmp_path / "images")}
    with closing(Judges(count=1)) as some:
        with pytest.raises(InvalidBundle, match="MB of memory"):
            some.ask("dataset", lambda: False, **asked).result(60)
        assert _ask(some, path).result(30)


_SMALL = """
import resource
from service.contract import limits
from service.stored import judge_process
limits.JUDGING_BYTES = int(open("/proc/self/statm").read().split()[0]) * 4096 + 90_000_000
judge_process.main()
"""


def test_a_judge_has_no_secrets_and_ends_with_its_parent(some, path, monkeypatch):
    monkeypatch.setenv("PRESCORE_DATABASE_URL", "postgresql://user:secret@host/name")
    _ask(some, path).result(30)
    (pid,) = _pids(some)
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"secret" not in environment
    (judge,) = some._idle[True]
    judge._process.stdin.close()
    judge._process.wait(10)


_HOSTILE = """
import os, sys
from service.stored import judge_process
def take_over(asked):
    false = b'{"facts": {"false": true}}\\n'
    os.write(1, {line} * 2)
    try:
        found = os.read(0, 1000)
    except OSError:
        found = b""
    os.write(1, found + false)
    while True:
        pass
judge_process.QUESTIONS["beginning"] = take_over
judge_process.main()
"""


@pytest.mark.parametrize(
    "line", ["false", "b'x' * (1 << 26)", "b'no json' + b'\\n'", "b'7' + b'\\n'"]
)
def test_a_judge_that_is_taken_over_answers_its_own_question_alone(line, path, monkeypatch):
    program = _HOSTILE.replace("{line}", line)
    monkeypatch.setattr(judges, "_COMMAND", [*judges._COMMAND[:1], "-c", program])
    with closing(Judges(count=1)) as some:
        answer = some.ask("beginning", lambda: False, path=str(path))
        if line == "false":
            assert answer.result(60) == {"false": True}
        else:
            with pytest.raises(ServiceUnavailable):
                answer.result(60)
        for _ in range(2):
            assert _ask(some, path).result(60)["architecture"]
