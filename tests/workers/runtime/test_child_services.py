"""Services of a worker for its warm child: Java and children in the sandbox, by one socket."""

import os
import socket
from pathlib import Path

import psutil
import pytest

from helpers.waits import until
from service.contract.assets import AssetFolders
from service.contract.errors import (
    ConverterUnavailable,
    JavaFailed,
    MetricFailed,
    MetricUnavailable,
    RunCanceled,
)
from workers.metrics import spice_tuples
from workers.runtime.child_services import ChildServices, ServiceSettings
from workers.runtime.service_channel import ServiceChannel
from workers.sandbox import converter_client, converter_protocol, operations, probe

pytestmark = pytest.mark.processes


@pytest.fixture
def open_java():
    """Java of a channel, closed at the end."""
    opened = []

    def begin(channel, kind="coco"):
        opened.append(channel.open_jvm(kind))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def serve(tmp_path):
    """Services, and the channel that a warm child would have."""
    opened = []

    def begin(converter=None):
        places = AssetFolders(tmp_path)
        services = ChildServices(ServiceSettings(places, 2_000_000_000, converter))
        channel = ServiceChannel(os.dup(services.descriptor))
        services.begin()
        opened.append((services, channel))
        return services, channel

    yield begin
    for services, channel in opened:
        services.close()
        channel.close()


def test_java_answers_by_the_channel_and_counts_items_from_the_first(serve, open_java):
    services, channel = serve()
    java = open_java(channel)
    assert java.call("ptb", ["A dog's life.", "Two cats"], batch=1) == [
        "a dog 's life .",
        "two cats",
    ]
    (process,) = services.list_processes()
    assert "workers.metrics.java.jvm_child" in " ".join(process.cmdline())
    items = [("a", ["b"]), ("a", ["b"]), (7, ["a"])]
    with pytest.raises(MetricFailed, match=r"^meteor: item 2: "):
        java.call("meteor", items, batch=1)
    services.close()
    until(lambda: not process.is_running(), 10, "the end of Java")
    with pytest.raises(JavaFailed, match="gave no answer of Java"):
        java.call("ptb", ["a"])


def test_who_is_canceled_ends_the_java_that_computes_for_it(serve, open_java):
    services, channel = serve()
    java = open_java(channel)
    java.call("ptb", ["a"])
    (process,) = services.list_processes()
    process.suspend()

    def cancel(_done, _total):
        raise RunCanceled("enough")

    with pytest.raises(RunCanceled):
        java.call("ptb", ["b"], progress=cancel)
    until(lambda: not process.is_running(), 10, "the end of Java")
    assert java.call("ptb", ["c"]) == ["c"]


def test_a_parser_that_is_not_here_is_told_as_unavailable(serve, open_java):
    _, channel = serve()
    parser = spice_tuples.TupleParser(open_java(channel, spice_tuples.JAVA))
    with pytest.raises(MetricUnavailable, match=r"CoreNLP 3\.6\.0"):
        parser.parse(["a dog"])


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"kind": "other", "operation": "ptb", "items": [], "first": 0, "deadline": 1.0},
        {"kind": "coco", "operation": "ptb", "items": "a", "first": 0, "deadline": 1.0},
        {"kind": "coco", "operation": "ptb", "items": [], "first": 0, "deadline": 1e9},
    ],
)
def test_a_request_to_java_that_is_none_is_refused(serve, request_):
    _, channel = serve()
    with channel.connect(b"j") as connection:
        converter_protocol.send_message(connection, request_)
        found, _ = converter_protocol.receive_message(connection, 10)
    assert found["error"][0] == "internal"


def test_a_child_in_the_sandbox_is_started_by_the_parent(serve, needs_sandbox):
    services, channel = serve()
    child = converter_client.ConverterChild(
        channel,
        operations.OperationCall("workers.sandbox.probe:try_escapes", [], [], {}, probe.LIMITS),
    )
    assert psutil.Process(child.pid).ppid() == os.getpid()
    assert child.begin() == {"reached": []}
    child.end()
    until(lambda: services.list_processes() == [], 10, "the child's end")


def test_what_it_was_started_for_ends_with_the_services(serve, needs_sandbox):
    services, channel = serve()
    staying = operations.OperationCall(
        "workers.sandbox.probe:try_escapes", [], [], {}, probe.LIMITS
    )
    child = converter_client.ConverterChild(channel, staying)
    services.close()
    until(lambda: not psutil.pid_exists(child.pid), 10, "the child's end")
    child.end()


def test_a_converter_that_is_away_is_told_by_the_channel(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(converter_client, "PATIENCE_SECONDS", 0.2)
    _, channel = serve(tmp_path / "none")
    for _ in range(2):
        with pytest.raises(ConverterUnavailable, match=r"no converter answers at .*none"):
            channel.connect()


def test_a_letter_that_names_nothing_ends_the_channel(serve):
    _, channel = serve()
    with pytest.raises((ConverterUnavailable, ConnectionError)):
        channel.connect(b"x")
    with pytest.raises((ConverterUnavailable, OSError)):
        channel.connect()


def test_a_socket_that_the_child_sends_is_of_no_use_to_it(serve):
    """The parent reads a letter alone; files that come with it are closed."""
    _, channel = serve()
    with Path("/dev/null").open("rb") as file:
        before = len(list(Path("/proc/self/fd").iterdir()))
        socket.send_fds(channel._socket, [b"c"], [file.fileno()])
        told, files, _, _ = socket.recv_fds(channel._socket, 1, 1)
        assert (told, len(files)) == (b"+", 1)
        os.close(files[0])
        until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before, 10, "as few open files")
