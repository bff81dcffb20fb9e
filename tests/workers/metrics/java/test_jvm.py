"""Real Java, really killed, stopped and starved; only nonsense has to be faked."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from helpers import interruptions
from service.contract.errors import JavaFailed, MetricFailed, RunCanceled
from service.kernel import confinement
from workers import processes
from workers.metrics.java import jvm_child
from workers.metrics.java.jvm import Jvm

pytestmark = pytest.mark.processes
LACKING = confinement.explain_missing_sandbox()
needs_sandbox = pytest.mark.skipif(LACKING is not None, reason=str(LACKING))

TEXTS = ["A dog's life.", "", "Two cats"]
TOKENS = ["a dog 's life .", "", "two cats"]


@pytest.fixture(scope="module")
def java():
    """To be ill-treated: the next call starts another. A secret stands in its environment."""
    with Jvm() as java, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PRESCORE_KEY", "secret")
        yield java


def _is_gone(pid, seconds=5.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def when_asked(monkeypatch):
    """Does something when Java has been asked and, being stopped, cannot have answered."""
    ask = processes.ChildProcess.send

    def install(action):
        def send(child, message):
            os.kill(child.pid, signal.SIGSTOP)
            ask(child, message)
            monkeypatch.setattr(processes.ChildProcess, "send", ask)
            action(child.pid)
            os.kill(child.pid, signal.SIGCONT)

        monkeypatch.setattr(processes.ChildProcess, "send", send)

    return install


def test_java_starts_with_the_first_call_and_stays_warm_until_it_is_closed(java):
    java.close()
    assert java.pid is None
    assert java.call("ptb", TEXTS) == TOKENS
    first = java.pid
    assert java.call("ptb", TEXTS) == TOKENS
    assert java.pid == first
    java.close()
    assert java.pid is None
    assert _is_gone(first)


def test_its_process_is_a_group_of_its_own_and_knows_no_secrets(java):
    java.call("ptb", TEXTS)
    assert os.getpgid(java.pid) == java.pid
    names = {
        entry.split("=")[0]
        for entry in Path(f"/proc/{java.pid}/environ").read_text().split("\0")
        if entry
    }
    assert names <= {"LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR"}
    assert "-Xmx" not in Path(f"/proc/{java.pid}/cmdline").read_text()


TRIES = """
import os, socket, sys, threading
from workers.metrics.java import jvm_child
def reaches(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno
jvm_child.confine_java([sys.argv[1]])
threading.Thread(target=int).start()
open(sys.argv[1]).close()
print([reaches(lambda: open(sys.argv[2])), reaches(lambda: open(sys.argv[1], "w")),
       reaches(socket.socket), reaches(os.fork), reaches(lambda: os.kill(os.getppid(), 0))])
"""


@needs_sandbox
def test_java_is_confined_before_it_starts(tmp_path):
    """It may read packages and its jars, and start threads; no other file, socket or process. The
    folder that it is started in is one in which Python looks for modules.
    """
    jar, record = tmp_path / "a.jar", tmp_path / "record.sqlite"
    for path in (jar, record):
        path.write_text("x")
    command = [sys.executable, "-c", TRIES, jar, record]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.stdout == "[13, 13, 1, 1, 1]\n", result.stderr


@needs_sandbox
def test_java_is_in_the_sandbox(java):
    java.call("ptb", TEXTS)
    status = Path(f"/proc/{java.pid}/status").read_text()
    assert "\nSeccomp:\t2\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status


def test_where_there_is_no_sandbox_java_runs_all_the_same(monkeypatch):
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock"
    )
    monkeypatch.setattr(confinement.Confinement, "apply", lambda _: pytest.fail("confined"))
    jvm_child.confine_java([])


def test_a_killed_java_is_an_error_that_says_so_and_the_next_call_starts_another(java, when_asked):
    java.call("ptb", TEXTS)
    victim = java.pid
    when_asked(lambda pid: os.kill(pid, signal.SIGKILL))
    with pytest.raises(JavaFailed, match="ptb: Java was killed by signal 9"):
        java.call("ptb", ["a cat"] * 50)
    assert java.call("ptb", TEXTS) == TOKENS
    assert java.pid != victim


def test_a_java_that_dies_between_two_calls_is_no_fault_of_the_second(java):
    java.call("ptb", TEXTS)
    os.kill(java.pid, signal.SIGKILL)
    java._child._process.wait(timeout=5)
    assert java.call("ptb", TEXTS) == TOKENS


@pytest.mark.parametrize(
    "texts", [TEXTS, ["x" * 1_000_000]], ids=["a short question", "one larger than a pipe"]
)
def test_a_hung_java_is_killed_at_its_deadline(java, texts):
    java.call("ptb", TEXTS)
    victim = java.pid
    os.kill(victim, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(JavaFailed, match=r"gave no answer within 0\.5 s"):
        java.call("ptb", texts, deadline=0.5)
    assert time.monotonic() - began < 3
    assert _is_gone(victim)
    assert java.call("ptb", TEXTS) == TOKENS


def test_the_last_output_of_a_crash_is_reported(java, when_asked):
    java.call("ptb", TEXTS)
    when_asked(lambda pid: os.kill(pid, signal.SIGSEGV))
    with pytest.raises(JavaFailed, match="fatal error has been detected by the Java Runtime"):
        java.call("ptb", TEXTS * 20_000, batch=100_000)  # it must not answer before it has died


def test_the_last_output_of_a_java_that_cannot_start_is_reported():
    with Jvm(heap="1k") as java, pytest.raises(JavaFailed, match="Too small maximum heap"):
        java.call("ptb", TEXTS)


@pytest.mark.slow
def test_a_java_without_memory_is_given_up_and_the_next_call_starts_another():
    with Jvm(heap="24m") as java:
        with pytest.raises(MetricFailed, match=r"meteor: .*OutOfMemoryError"):
            java.call("meteor", [("a cat", ["a cat"])])
        assert java.pid is None
        assert java.call("ptb", TEXTS) == TOKENS


FRAMED, BARE = "struct.pack('>I', len(body)) + body", "body"


@pytest.mark.parametrize(
    ("body", "written", "complaint"),
    [
        ("b'not json'", FRAMED, "answered what is no JSON: b'not json'"),
        ("b'[]'", FRAMED, "answered something else than was asked"),
        ("json.dumps({'id': 7, 'answers': [1, 2, 3]}).encode()", FRAMED, "else than was asked"),
        ("json.dumps({'id': 1, 'answers': [1, 2]}).encode()", FRAMED, "for each of 3 items"),
        ("json.dumps({'id': 1}).encode()", FRAMED, "one answer for each of 3 items"),
        ("b'HTTP/1.1 200 OK'", BARE, r"an answer of 1,213,486,160 bytes: b'HTTP/1.1 200 OK'"),
        ("b'\\0\\0\\0\\2{}and more'", BARE, "said more than its answer"),
        ("b'\\0\\0\\0\\7{}'", BARE, "gave no answer within 1 s"),
    ],
)
def test_nonsense_is_an_error_and_its_child_is_killed(monkeypatch, body, written, complaint):
    """A fake child: real Java talks no nonsense."""
    code = f"import json, struct, sys\nbody = {body}\nsys.stdout.buffer.write({written})\n"
    code += "sys.stdout.flush()\nsys.stdin.read()\n"
    monkeypatch.setattr("workers.metrics.java.jvm._START", code)
    with Jvm(deadline=1 if "gave no" in complaint else 20) as java:
        with pytest.raises(JavaFailed, match=complaint):
            java.call("ptb", TEXTS)
        assert java.pid is None


def test_a_child_that_talks_much_before_it_dies_does_not_block_and_its_end_is_kept(monkeypatch):
    code = "import sys; sys.stderr.write('x' * 1_000_000 + 'the end'); sys.exit(3)"
    monkeypatch.setattr("workers.metrics.java.jvm._START", code)
    with Jvm(deadline=20) as java, pytest.raises(JavaFailed) as caught:
        java.call("ptb", TEXTS)
    assert "ended with exit code 3; its last output: xxx" in caught.value.detail
    assert caught.value.detail.endswith("xthe end")
    assert len(caught.value.detail) < 5000


def test_a_cancel_kills_java_at_once(java):
    """While METEOR reads its table, which takes seconds."""
    java.call("ptb", TEXTS)
    victim = java.pid
    until = time.monotonic() + 0.5
    ends = interruptions.ends_when(lambda _: time.monotonic() > until)
    with pytest.raises(RunCanceled):
        java.call("meteor", [("a", ["a"])], progress=ends)
    assert time.monotonic() - until < 1
    assert _is_gone(victim)


def test_an_item_that_java_refuses_is_named_and_java_stays_warm(jvm):
    items = [("a cat", ["a cat"])] * 3 + [(None, ["a cat"])] + [("a cat", ["a cat"])]
    with pytest.raises(MetricFailed, match=r"^meteor: item 3: ") as caught:
        jvm.call("meteor", items, batch=2)
    assert not isinstance(caught.value, JavaFailed)
    warm = jvm.pid
    assert [score for score, _ in jvm.call("meteor", items[:2])] == [1.0, 1.0]
    assert jvm.pid == warm


def test_questions_and_answers_may_be_larger_than_any_pipe(jvm):
    texts = [f"w{index} " * 2000 for index in range(30)]
    assert jvm.call("ptb", texts, batch=30) == [text.strip() for text in texts]


def test_progress_counts_batches(jvm):
    """And says the same again while Java computes."""
    told = []
    jvm.call("ptb", TEXTS, batch=2, progress=lambda *at: told.append(at))
    assert [at for at in dict.fromkeys(told) if at[0]] == [(2, 3), (3, 3)]


def test_the_thread_that_started_java_may_end(java):
    """The kernel tells a child of the end of the thread that started it, not of the process."""
    java.close()
    thread = threading.Thread(target=java.call, args=("ptb", TEXTS))
    thread.start()
    thread.join()
    warm = java.pid
    time.sleep(0.2)
    assert java.call("ptb", TEXTS) == TOKENS
    assert java.pid == warm


def test_two_threads_take_turns(jvm):
    found = {}

    def ask(name):
        texts = [f"{name}{index}" for index in range(400)]
        found[name] = jvm.call("ptb", texts, batch=20) == texts

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": True, "b": True, "c": True}


def test_a_busy_java_dies_with_its_parent():
    """While METEOR reads its table and no pipe is looked at."""
    code = """
import os, signal, time
from workers.metrics.java import jvm_child
from workers.metrics.java.jvm import Jvm
from service.kernel import confinement

java = Jvm()
java.call("ptb", ["a"])
print(java.pid, flush=True)
until = time.monotonic() + 0.5
java.call(
    "meteor",
    [("a", ["a"])],
    progress=lambda *_: time.monotonic() > until and os.kill(os.getpid(), signal.SIGKILL),
)
"""
    root = Path(__file__).resolve().parents[4]
    parent = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root
    )
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    assert _is_gone(int(parent.stdout), seconds=2)
