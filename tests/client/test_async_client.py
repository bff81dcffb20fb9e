"""AsyncClient: the same requests and answers as Client's, awaited, and ended by a cancellation."""

import asyncio
import inspect
import socket
import threading
import time

import pytest

import prescore
from client.scripted_service import score
from helpers.networks import Link
from helpers.waits import until


@pytest.fixture
def asked(service, quick):
    """Runs `body(client)` in an event loop of its own."""

    def run(body):
        async def with_client():
            async with prescore.AsyncClient(service.url, patience=5) as client:
                return await body(client)

        return asyncio.run(with_client())

    return run


def _public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    assert _public(prescore.AsyncClient) == _public(prescore.Client)
    for name in _public(prescore.Client) - {"url"}:
        awaited, plain = (getattr(kind, name) for kind in (prescore.AsyncClient, prescore.Client))
        found, expected = (inspect.signature(each).parameters for each in (awaited, plain))
        assert found == expected, name


def test_lists_are_fetched_page_by_page(service, asked):
    for number in range(5):
        service.start(labels={"n": str(number)})

    async def body(client):
        listing = client.evaluations()
        first = await anext(listing)
        after_one = len(service.seen("GET"))
        return first, after_one, [each async for each in listing]

    first, after_one, rest = asked(body)
    assert (first.id, after_one) == ("ev_1", 1)
    assert [each.labels["n"] for each in rest] == ["1", "2", "3", "4"]
    assert len(service.seen("GET")) == 3


@pytest.mark.long
def test_many_runs_are_waited_for_at_the_same_time(service, asked):
    ids = [service.start(status="running") for _ in range(12)]

    async def body(client):
        waits = [asyncio.create_task(client.wait(id_)) for id_ in ids]
        both = asyncio.to_thread(service.wait_until, lambda: len(service.requests) >= 24)
        await both  # each holds its second request
        for id_ in ids:
            service.change(id_, status="succeeded", scores={"cider_d": score(0.5)})
        return await asyncio.gather(*waits)

    assert [run.id for run in asked(body)] == ids


@pytest.fixture
def silent():
    """A service that takes requests, and neither reads their bodies nor answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _canceled(url, call, seconds=0.3):
    """Begin a call and cancel it; returns the seconds until its thread has ended too."""

    def working():
        return [thread for thread in threading.enumerate() if "AnyIO" in thread.name]

    async def body():
        async with prescore.AsyncClient(url, patience=60) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(seconds)
            assert not task.done()
            task.cancel()
            begun.append(time.monotonic())
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - begun[0] < 0.2

    begun = []
    asyncio.run(body())
    until(lambda: not working(), 10, "the end of its thread")
    return time.monotonic() - begun[0]


async def _all(iterated):
    return [each async for each in iterated]


@pytest.mark.long
@pytest.mark.parametrize("call", ["wait", "events", "evaluations"])
def test_a_canceled_call_ends_its_request_and_its_thread(service, silent, call):
    def begin(client):
        if call == "evaluations":
            return _all(client.evaluations())
        answer = getattr(client, call)(service.start(status="running"))
        return _all(answer) if call == "events" else answer

    assert _canceled(silent, begin) < 1
    if call in ("wait", "events"):  # the service holds its answer, or has sent a part of it
        assert _canceled(service.url, begin) < 1


@pytest.mark.long
def test_a_canceled_call_ends_its_pause(service):
    service.fault("GET", "ev_1", status=503, headers={"Retry-After": "30"})
    assert _canceled(service.url, lambda client: client.evaluation("ev_1")) < 1
    assert len(service.requests) == 1


@pytest.mark.long
def test_a_canceled_upload_ends_while_its_digest_is_computed(silent, tmp_path):
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:
        file.truncate(50 << 30)
    assert _canceled(silent, lambda client: client.upload_checkpoint(path)) < 1


@pytest.mark.long
def test_a_canceled_upload_ends_while_nobody_reads_it(service, silent, tmp_path):
    path = tmp_path / "large.safetensors"
    path.write_bytes(bytes(20 << 20))
    with Link("127.0.0.1", int(service.url.rpartition(":")[2])) as link:
        sent = []

        def progress(done, total):
            sent.append(done)
            if done == 1 << 20:
                link.silence()

        url = f"http://127.0.0.1:{link.port}"
        assert _canceled(url, lambda client: client.upload_checkpoint(path, progress), 1) < 1.5
        assert 0 < max(sent) < 20 << 20


@pytest.mark.long
def test_a_canceled_download_leaves_the_older_file(tmp_path):
    """The body has no length: where it is cut looks like its end."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"as it was")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def answer():
            near, _ = listener.accept()
            with near:
                near.recv(1 << 16)
                near.sendall(b"HTTP/1.1 200 OK\r\n\r\nsome of it")
                near.recv(1)  # until the client has closed it

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert _canceled(url, lambda client: client.fetch_model("tr_1", path)) < 1
        thread.join()
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("model.safetensors", b"as it was")
    ]


@pytest.mark.long
def test_a_client_that_is_closed_ends_its_calls(service):
    id_ = service.start(status="running")

    async def body():
        async with prescore.AsyncClient(service.url) as client:
            waiting = asyncio.create_task(client.wait(id_))
            await asyncio.to_thread(service.wait_until, lambda: len(service.requests) >= 2)
        with pytest.raises(RuntimeError, match="the client was closed"):
            await asyncio.wait_for(waiting, 1)
        with pytest.raises(RuntimeError, match="the client was closed"):
            await client.evaluation(id_)

    asyncio.run(body())


def test_whoever_stops_listening_frees_the_connection(service, asked):
    id_ = service.start()
    service.tell(id_, "task", {"number": 1})

    async def body(client):
        async for event in client.events(id_):
            assert event.data == {"number": 1}
            break

        def is_freed():
            service.tell(id_, "task", {"number": 2})  # it notices when it sends more
            return not service._connections

        await asyncio.to_thread(until, is_freed, 5, "the end of the connection")

    asked(body)


def test_callbacks_are_called_in_the_event_loop(service, asked, checkpoint):
    id_ = service.start(status="succeeded")
    threads = []

    async def body(client):
        await client.wait(id_, on_change=lambda _: threads.append(threading.get_ident()))
        await client.upload_checkpoint(checkpoint, lambda *_: threads.append(threading.get_ident()))
        return threading.get_ident()

    assert {asked(body)} == set(threads)


def test_an_error_of_a_callback_ends_the_call(service, asked, checkpoint):
    def stop(done, total):
        raise LookupError(done)

    with pytest.raises(LookupError):
        asked(lambda client: client.upload_checkpoint(checkpoint, stop))


def test_connections_are_used_again(service, asked):
    service.start()

    async def body(client):
        for _ in range(5):
            await client.evaluation("ev_1")
        return len(service._connections)

    assert asked(body) == 1
