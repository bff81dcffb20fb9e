"""AsyncClient: the same requests and answers as Client's, awaited."""

import asyncio
import inspect
import time

import pytest

import prescore
from client.contract_service import score
from prescore.http import retries


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


def test_a_checkpoint_is_sent_once_and_evaluated(service, shapes, checkpoint, asked):
    told = []

    async def body(client):
        for _ in range(2):
            digest = await client.upload_checkpoint(checkpoint, lambda *news: told.append(news))
        evaluation = await client.submit("shapes/test", checkpoint=digest, labels={"run": "7"})
        assert await client.has_checkpoint(digest)
        return evaluation

    evaluation = asked(body)
    assert evaluation.labels == {"run": "7"}
    assert told[-1] == (7000, 7000)
    assert len(service.seen("PUT", "checkpoints")) == 1


@pytest.mark.parametrize("how", [{"cut_upload": 1000}, {"lose": "answer"}], ids=str)
def test_a_cut_upload_is_sent_again(service, checkpoint, asked, how):
    service.fault("PUT", "checkpoints", **how)
    digest = asked(lambda client: client.upload_checkpoint(checkpoint))
    assert service.checkpoints == {digest: checkpoint.read_bytes()}


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


def test_a_canceled_wait_ends_at_once(service, asked):
    service.start(status="running")

    async def body(client):
        waiting = asyncio.create_task(client.wait("ev_1"))
        await asyncio.to_thread(service.wait_until, lambda: len(service.requests) >= 2)
        begun = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return time.monotonic() - begun

    assert asked(body) < 0.5


def test_events_are_resumed_after_a_cut(service, asked):
    id_ = service.start()
    for number in range(4):
        service.tell(id_, "work", {"number": number})
    service.tell(id_, "end", {"status": "succeeded"})
    service.fault("GET", "events", cut_events=2)

    async def body(client):
        return [(event.name, event.data) async for event in client.events(id_)]

    found = asked(body)
    assert [data.get("number") for _, data in found] == [0, 1, 2, 3, None]
    assert len(service.seen("GET", "events")) == 2


def test_a_busy_service_is_asked_again_and_a_refusal_is_raised(service, asked):
    service.start()
    service.fault("GET", "ev_1", status=503, times=2)
    assert asked(lambda client: client.evaluation("ev_1")).id == "ev_1"
    with pytest.raises(prescore.Refused, match="no evaluation ev_9"):
        asked(lambda client: client.evaluation("ev_9"))
    with pytest.raises(prescore.Unreachable):
        asyncio.run(_of_nothing())


async def _of_nothing():
    async with prescore.AsyncClient("http://127.0.0.1:1", patience=0) as client:
        await client.evaluation("ev_1")


def test_a_pause_holds_up_nothing_else(service, asked, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.3)
    monkeypatch.setattr(retries, "LONGEST_SECONDS", 0.3)
    service.start()
    service.fault("GET", "ev_1", status=503)

    async def body(client):
        asking, turns = asyncio.create_task(client.evaluation("ev_1")), 0
        while not (await asyncio.wait({asking}, timeout=0.01))[0]:
            turns += 1
        return turns

    assert asked(body) > 5


def test_what_is_no_answer_of_prescore_says_so(service, asked):
    service.fault("GET", "ev_1", status=200, body=b"<html>")
    with pytest.raises(prescore.ServiceError, match="a Prescore service"):
        asked(lambda client: client.evaluation("ev_1"))
