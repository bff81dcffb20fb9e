"""T51: the child of the sandbox: how it starts, what it answers, and what ends it."""

import os
import platform
import struct

import pytest

from service.kernel.process_limits import ChildLimits
from workers.sandbox.operations import ChildStopped, InputRefused

pytestmark = pytest.mark.processes


def test_a_child_has_no_environment_no_files_and_no_threads(hostile, monkeypatch):
    monkeypatch.setenv("PRESCORE_DATABASE_URL", "postgresql://u:secret@h/d")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with open("/etc/passwd", "rb") as inherited:  # noqa: PTH123
        os.set_inheritable(inherited.fileno(), True)
        found = hostile("surroundings")
    kept = {"LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    kept |= {"TORCHINDUCTOR_CACHE_DIR"}  # a folder that cannot be written
    assert set(found["environment"]) <= kept
    files = [name for name in found["files"] if not name.startswith(("pipe:", "/proc/"))]
    assert files == ["/dev/null"]
    assert found["threads"] == 1


def test_no_limit_can_be_raised_again(hostile):
    assert set(hostile("raise_limits").values()) <= {"ValueError", "EPERM"}


@pytest.mark.parametrize(
    ("operation", "limits", "said"),
    [
        ("wait", ChildLimits(seconds=0.5), "took longer than 0.5 s"),
        ("crash", ChildLimits(), "SIGSEGV"),
        ("become", ChildLimits(), "PermissionError"),
    ],
)
def test_what_ends_a_child_is_told(hostile, operation, limits, said):
    with pytest.raises(ChildStopped, match=said):
        hostile(operation, limits=limits)


@pytest.mark.long
def test_a_child_that_computes_too_long_is_ended_by_the_kernel(hostile):
    with pytest.raises(ChildStopped, match="SIGXCPU"):
        hostile("compute", limits=ChildLimits(cpu_seconds=1))


def test_a_child_that_needs_too_much_memory_says_so(hostile):
    with pytest.raises(InputRefused, match="more memory than it may"):
        hostile("allocate", {"bytes": 300_000_000}, limits=ChildLimits(memory=200_000_000))
    found = hostile("allocate", {"bytes": 100_000_000}, limits=ChildLimits(memory=200_000_000))
    assert found == {"bytes": 100_000_000}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls of other machines than x86_64")
@pytest.mark.parametrize("operation", ["call_of_32_bits", "call_of_x32"])
def test_a_call_by_another_machines_numbers_ends_the_child(hostile, operation):
    """They would pass a filter that looks at the number alone."""
    with pytest.raises(ChildStopped, match="SIGSYS"):
        hostile(operation)


def _framed(body: bytes) -> str:
    return (struct.pack(">I", len(body)) + body).hex()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack(">I", 1 << 20).hex(), "announced an answer of 1,048,576 bytes"),
        (_framed(b"[" * 60_000), "no JSON"),
        (_framed(b"\xff{"), "no JSON"),
        (_framed(b'{"answer": 7}'), "something else"),
        (_framed(b'{"problem": ["x"]}'), "something else"),
        (_framed(b"[]"), "something else"),
    ],
)
def test_an_answer_that_is_none_ends_the_child(hostile, sent, said):
    with pytest.raises(ChildStopped, match=said):
        hostile("say", {"bytes": sent}, limits=ChildLimits(seconds=20))


def test_a_problem_is_one_line_of_plain_text_and_short(hostile):
    with pytest.raises(InputRefused) as told:
        hostile("refuse", {"text": "a\x1b[2J\nb" + "x" * 5000})
    assert str(told.value).startswith(r"a\x1b[2J\nbxxx")
    assert len(str(told.value)) < 1100
