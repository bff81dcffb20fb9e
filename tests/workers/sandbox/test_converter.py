"""The converter: what goes through its socket, what its children reach, what its clients may do."""

import json
import os
import re
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from helpers import converters
from helpers.sandbox_surroundings import surroundings
from helpers.waits import until
from service.contract.errors import ConverterUnavailable, InvalidSetting
from service.kernel.process_limits import ChildLimits
from workers.sandbox import converter_client, converter_protocol, converter_server, operations
from workers.sandbox.children import OperationCall
from workers.sandbox.converter_client import ConverterChild, ConverterSocket
from workers.sandbox.converter_protocol import OPERATIONS
from workers.sandbox.operations import ChildStopped, InputRefused, StayingChild

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def converter(needs_sandbox, tmp_path_factory):
    with converters.running(tmp_path_factory.mktemp("c"), hostile=True) as found:
        yield found


@pytest.fixture
def own(needs_sandbox, tmp_path):
    """A converter that a test may kill."""
    with converters.running(tmp_path, hostile=True) as found:
        yield found


@pytest.fixture
def hostile(converter):
    """Performs an operation of tests/helpers/hostile_child.py there."""
    operations.choose_converter(converter.address)

    def perform(name, parameters=None, inputs=(), outputs=(), **options):
        return operations.run_operation(
            f"hostile_child:{name}", inputs, outputs, parameters, **options
        )

    yield perform
    operations.choose_converter(None)


def _task(name, **limits):
    return OperationCall(f"hostile_child:{name}", [], [], {}, ChildLimits(**limits))


def test_a_hostile_child_there_reaches_no_home_no_secrets_and_no_network(hostile, tmp_path):
    with surroundings(tmp_path) as given:
        files = {"inputs": [tmp_path / "input"], "outputs": [Path(given["output"])]}
        found = hostile("attack", given, **files)
    assert len(found) > 50
    assert {name for name, how in found.items() if how == "reached"} == set()


def test_a_child_there_has_its_files_alone_and_no_environment(hostile, tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_DATABASE_URL", "postgresql://u:secret@h/d")
    (tmp_path / "input").write_text("words")
    found = hostile("surroundings", inputs=[tmp_path / "input"], outputs=[tmp_path / "output"])
    kept = {"LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    kept |= {"TORCHINDUCTOR_CACHE_DIR"}  # a folder that cannot be written
    assert set(found["environment"]) <= kept
    others = [name for name in found["files"] if not name.startswith(("pipe:", "/proc/"))]
    assert others == sorted(["/dev/null", str(tmp_path / "input"), str(tmp_path / "output")])


@pytest.mark.parametrize(
    ("operation", "asked", "limits", "raised", "said"),
    [
        ("wait", {}, {"seconds": 0.5}, ChildStopped, "took longer than 0.5 s"),
        ("refuse", {"text": "a\x1b[2J"}, {}, InputRefused, r"a\\x1b\[2J"),
        ("allocate", {"bytes": 3 * 10**9}, {"memory": 10**10}, InputRefused, "more memory"),
        ("be_killed", {}, {}, ConverterUnavailable, "SIGKILL.*it is tried again"),
    ],
    ids=["time", "refusal", "memory of the converter", "killed from outside"],
)
def test_how_a_child_ends_is_told_as_if_it_were_here(
    hostile, operation, asked, limits, raised, said
):
    with pytest.raises(raised, match=said):
        hostile(operation, asked, limits=ChildLimits(**limits))


def test_who_leaves_ends_the_child(converter):
    there = ConverterChild(converter.address, _task("wait"))
    assert psutil.pid_exists(there.pid)
    there.end()
    until(lambda: not psutil.pid_exists(there.pid), 5, "the child's end")


def test_a_child_that_stays_answers_through_the_memory_that_both_see(hostile, tmp_path):
    (tmp_path / "one").write_text("words")
    child = StayingChild("staying_child:serve", [tmp_path / "one"], {"more": 7}, shared=4096)
    assert child.told == {"opened": ["words"], "more": 7}
    child.memory[:3] = b"\x01\x02\x03"
    assert child.ask({"do": "double", "bytes": 3}) == {"length": 1}
    assert bytes(child.memory[:4]) == b"\x02\x04\x06\x00"
    assert child.is_open
    assert "reached" not in child.ask({"do": "cut"}).values()
    child.close()
    assert not child.is_open
    until(lambda: not psutil.pid_exists(child.pid), 5, "the child's end")


def test_children_at_once_are_bounded_and_who_waits_is_told(converter):
    one, other = (ConverterChild(converter.address, _task("wait")) for _ in "12")
    waiting = converter.address.connect(0)
    converter_protocol.send_message(waiting, converter_client._asked(_task("wait")))
    assert converter_protocol.receive_message(waiting, 10)[0] == {"waits": True}
    memory = os.memfd_create("test")
    os.ftruncate(memory, 4096)
    staying = OperationCall("staying_child:serve", [], [], {}, ChildLimits(), shared=(memory, 4096))
    ConverterChild(converter.address, staying).end()  # has a place of its own
    one.end()
    while (found := converter_protocol.receive_message(waiting, 10)[0]) == {"waits": True}:
        pass
    assert list(found) == ["began"]
    waiting.close()
    other.end()


def _framed(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body


def _said(converter, data, files=(), *, stays=False):
    """The answer to a client that sends this, and nothing more; None: the converter hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(converter.socket))
        client.settimeout(5)
        socket.send_fds(client, [data], files)
        if not stays:
            client.shutdown(socket.SHUT_WR)
        try:
            (size,) = struct.unpack(">I", client.recv(4))
            return json.loads(client.recv(size))
        except (struct.error, ConnectionError):
            return None


PLAIN = converter_client._asked(_task("wait"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">I", 1 << 31) + b"x" * 1000,
        _framed(b"\xff{"),
        _framed(b"[" * 60_000),
        _framed(b"[]"),
        _framed(b"7"),
    ],
)
def test_rubbish_is_left_alone(converter, data):
    assert _said(converter, data) is None
    assert len(data) < 10 or _said(converter, data, stays=True) is None  # before it waits for more
    converter_client.check_converter(converter.socket)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"operation": "os:system"}, "no operation of the name 'os:system'"),
        ({"inputs": 1}, "expected other files than the 0 that came"),
        ({"inputs": -1}, "inputs: "),
        ({"shared": 4096}, "expected shared memory of an operation that stays"),
        ({"limits": {**PLAIN["limits"], "seconds": 1e9}}, "limits/seconds: "),
        ({"limits": {}}, "limits/seconds: "),
        ({"without": ["seccomp"]}, "without: "),
        ({"modules": ["/folder"]}, "modules: "),
    ],
)
def test_a_task_that_is_none_is_refused_with_a_reason(converter, changed, said):
    found = _said(converter, _framed({**PLAIN, **changed}))
    assert said in found["refused"]


def test_too_many_files_and_odd_ones_are_closed_again(converter, tmp_path):
    converter_client.check_converter(converter.socket)
    before = converter.process.num_fds()
    folder = os.open(tmp_path, os.O_RDONLY)
    reading, writing = os.pipe()
    try:
        message = _framed({**PLAIN, "inputs": 1})
        for odd in (reading, folder):
            found = _said(converter, message, [odd])
            assert "expected files, found a folder or something else" in found["refused"]
        for _ in range(3):
            assert _said(converter, message, [reading] * 250) is None
            assert _said(converter, b"\x00", [reading] * 200) is None
    finally:
        for each in (reading, writing, folder):
            os.close(each)
    until(lambda: converter.process.num_fds() <= before, 5, "as few open files as before")


@pytest.mark.parametrize(
    ("inputs", "flags", "said"),
    [
        (1, os.O_PATH, "expected files that are open to be read"),
        (1, os.O_WRONLY, "expected files that are open to be read"),
        (0, os.O_RDONLY, "expected outputs that are open to be written"),
    ],
)
def test_a_child_gets_no_more_of_a_file_than_its_client_has(
    converter, tmp_path, inputs, flags, said
):
    """The child opens it again, by rights of its own."""
    (tmp_path / "file").write_text("words")
    file = os.open(tmp_path / "file", flags)
    found = _said(converter, _framed({**PLAIN, "inputs": inputs, "outputs": 1 - inputs}), [file])
    os.close(file)
    assert found["refused"] == said


def test_who_says_nothing_keeps_nobody_from_being_served(hostile, converter):
    silent = [converter.address.connect(0) for _ in range(60)]
    assert "environment" in hostile("surroundings")
    for each in silent:
        each.close()


def test_a_client_is_not_kept_by_its_silence(monkeypatch):
    monkeypatch.setattr(converter_server, "_ASK_SECONDS", 0.05)
    one, other = socket.socketpair()
    found = converter_server.Converter(converter_server.ConverterBounds(1, 1))
    found._connections.acquire()
    found._handle(other)
    assert one.recv(1) == b""
    one.close()


@pytest.mark.slow
def test_its_death_is_no_verdict_and_ends_the_children(own):
    there = ConverterChild(own.address, _task("wait"))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(there.begin)
        own.kill()
        with pytest.raises(ConverterUnavailable, match="what it was asked is tried again"):
            coming.result(10)
    until(lambda: not psutil.pid_exists(there.pid), 5, "the child's end")
    own.start()  # where the socket still lies
    ConverterChild(own.address, _task("wait")).end()


def test_a_child_that_stays_is_lost_with_it(own):
    operations.choose_converter(own.address)
    try:
        child = StayingChild("staying_child:serve", [], shared=4096)
        own.kill()
        with pytest.raises((ConverterUnavailable, ChildStopped)):
            child.ask({"do": "double", "bytes": 1})
        assert not child.is_open
    finally:
        operations.choose_converter(None)
        own.start()


def test_where_none_listens_a_worker_waits_for_it_and_then_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(converter_client, "PATIENCE_SECONDS", 0.3)
    with pytest.raises(ConverterUnavailable, match=r"no converter answers at .*PRESCORE_CONVERTER"):
        ConverterChild(ConverterSocket(tmp_path / "none"), _task("wait"))


def test_only_one_listens_at_a_place_and_for_its_user_alone(converter):
    assert converter.socket.stat().st_mode & 0o777 == 0o600
    for path, told in (
        (converter.socket, "another converter listens at"),
        (Path("/nowhere/at/all"), "expected a place for a socket at"),
    ):
        with pytest.raises(InvalidSetting, match=told):
            converter_server.Converter(converter_server.ConverterBounds(1, 1)).serve(path)


def test_the_tasks_are_all_that_this_program_starts_and_each_is_there():
    named = set()
    for path in (ROOT / "workers").rglob("*.py"):
        if path.name != "converter_protocol.py":
            named |= set(re.findall(r'"(workers(?:\.\w+)+:\w+)"', path.read_text("utf-8")))
    assert {*named, "workers.sandbox.probe:try_escapes"} == set(OPERATIONS)
    for each in OPERATIONS:
        module, _, name = each.partition(":")
        source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")
        assert f"\ndef {name}(" in source
