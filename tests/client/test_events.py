"""Server-sent events over connections that break: no gap, no event twice, and an end."""

import itertools
import threading
import time

import pytest

import prescore
from helpers.waits import until
from prescore.http.events import EventParser


@pytest.fixture
def run(service):
    id_ = service.start()
    for number in range(1, 7):
        service.tell(id_, "task", {"name": f"columns {number}", "text": "a\u2028b\x85c é\r\n"})
    service.tell(id_, "scores", {"cider_d": {"value": 0.4}})
    service.tell(id_, "end", {"status": "succeeded"})
    return id_


IDS = [str(number) for number in range(1, 9)]


def test_every_event_comes_in_order_until_the_end(service, client, run):
    events = list(client.events(run))
    assert [event.id for event in events] == IDS
    assert [event.name for event in events] == ["task"] * 6 + ["scores", "end"]
    assert events[2].data == {"name": "columns 3", "text": "a\u2028b\x85c é\r\n"}
    assert service.seen("GET", "/events")[0][2]["Accept"] == "text/event-stream"
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("replays", "last"), [(False, [None, None, "2", "2", "7"]), (True, [None, None, "2", "2", "5"])]
)
def test_a_broken_connection_is_resumed_without_gap_or_duplicate(
    service, client, run, replays, last
):
    """From the last whole event, of which the service is told, whether it heeds that or not."""
    service.replays = replays
    for cut in (0, 2, 0, 5):
        service.fault("GET", "/events", cut_events=cut)
    assert [event.id for event in client.events(run)] == IDS
    assert [headers.get("Last-Event-ID") for *_, headers in service.requests] == last


def test_a_later_listener_gets_what_came_after(service, client, run):
    assert [event.id for event in client.events(run, last_event_id="6")] == ["7", "8"]


@pytest.mark.long
@pytest.mark.parametrize("how", [{"status": 503}, {"status": 429}, {"lose": "request"}], ids=str)
def test_a_service_that_is_away_for_a_moment_is_asked_again(service, client, run, how):
    """It said once how long to wait before each attempt, and that holds for all that follow."""
    service.retry = 100
    service.fault("GET", "/events", cut_events=2)
    service.fault("GET", "/events", times=2, **how)
    begun = time.monotonic()
    assert [event.id for event in client.events(run)] == IDS
    assert 0.3 <= time.monotonic() - begun < 1
    assert len(service.requests) == 4


def test_a_refusal_is_no_reason_to_try_again(service, client):
    with pytest.raises(prescore.Refused, match="no evaluation ev_9"):
        list(client.events("ev_9"))
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("text/html", "expected events, found 'text/html'"),
        ("text/event-stream", "expected an event's data in JSON"),
    ],
)
def test_something_that_is_no_stream_of_events_is_told(service, client, run, kind, message):
    body = b"id: 1\nevent: task\ndata: {oh\n\n"
    service.fault("GET", "/events", status=200, body=body, headers={"Content-Type": kind})
    with pytest.raises(prescore.ServiceError, match=message):
        list(client.events(run))


def test_a_service_without_events_for_this_run_ends_the_listening(service, client, run):
    service.fault("GET", "/events", status=204)
    assert list(client.events(run)) == []


def test_patience_with_silence_ends(service, quick, run):
    service.fault("GET", "/events", lose="request", times=10**6)
    with prescore.Client(service.url, patience=0) as client, pytest.raises(prescore.Unreachable):
        list(client.events(run))


@pytest.mark.long
def test_a_connection_that_is_cut_again_and_again_with_news_does_not_end_patience(
    service, quick, run
):
    """Each time there is one event more: that is a slow network, not a service that is away."""
    service.retry = 150
    for _ in range(7):
        service.fault("GET", "/events", cut_events=1)
    with prescore.Client(service.url, patience=0.5) as client:
        assert [event.id for event in client.events(run)] == IDS


def test_whoever_stops_listening_frees_the_connection(service, client, run):
    before = threading.active_count()
    for _ in range(5):
        events = client.events(run)
        next(events)
        events.close()
    until(lambda: threading.active_count() <= before + 1, 5, "the ends of the connections' threads")


STREAM = (
    b": a comment\r\nretry: 25\r\n\r\n"
    b"id: 1\r\nevent: task\r\ndata: {\r\ndata:  1}\r\n\r\n"
    b"id:2\rdata:x\r\r"
    b"id: 3\nevent: nothing\n\n"
    b"id: bad\0id\nevent\ndata\n\n"
    b"data: \xe2\x80\xa8\xc3\xa9\nunknown: field\nretry: soon\n\n"
    b"id: 9\ndata: cut of"
)
EXPECTED = [
    ("1", "task", "{\n 1}"),
    ("2", "message", "x"),
    ("", "", ""),
    ("", "message", "\u2028é"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_standards_grammar_however_the_bytes_are_cut(size):
    parser = EventParser()
    chunks = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert list(itertools.chain.from_iterable(map(parser.feed, chunks))) == EXPECTED
    assert parser.retry == 0.025
