"""Long polls: news at once, few requests, patience with the service and none beyond the timeout."""

import time

import pytest

import prescore
from client.scripted_service import meanwhile, score
from prescore.http import polling


@pytest.mark.long
def test_news_comes_while_the_service_holds_its_answer(service, client):
    """A change of a field that we do not know is none."""
    id_ = service.start(status="queued")
    changes = []
    told = {}

    def go_on():
        for number, fields in enumerate(
            (
                {"status": "running"},
                {"a_field_of_next_year": {"x": 2}},
                {"scores": {"bleu_1": score(0.5)}},
                {"status": "succeeded"},
            )
        ):
            service.wait_until(lambda number=number: len(service.requests) >= number + 2)
            time.sleep(0.05)  # the poll is held by now
            told[number] = time.monotonic()
            service.change(id_, **fields)

    with meanwhile(go_on):
        begun = time.monotonic()
        evaluation = client.wait(id_, timeout=20, on_change=changes.append)
        ended = time.monotonic()
    assert [(change.status, len(change.scores)) for change in changes] == [
        *(("queued", 0), ("running", 0), ("running", 1), ("succeeded", 1))
    ]
    assert evaluation == changes[-1]
    assert ended - told[3] < 0.5
    assert ended - begun < 1.5
    polls = [headers for *_, headers in service.seen("GET", id_)]
    assert len(polls) == 5
    assert [headers.get("If-None-Match") for headers in polls] == [
        *(None, '"ev_1.1"', '"ev_1.2"', '"ev_1.3"', '"ev_1.4"')
    ]
    assert "Prefer" not in polls[0]
    assert polls[1]["Prefer"] == "wait=19"


@pytest.mark.long
@pytest.mark.parametrize("timeout", [0, 0.3])
def test_after_the_timeout_the_run_goes_on_without_us(service, client, timeout):
    id_ = service.start(scores={"bleu_1": score(0.5)})
    begun = time.monotonic()
    with pytest.raises(prescore.TimedOut, match=f"ev_1 is still running after {timeout} s") as late:
        client.wait(id_, timeout=timeout)
    assert timeout <= time.monotonic() - begun < timeout + 0.5
    assert late.value.run.scores["bleu_1"].value == 0.5
    assert service.evaluations[id_]["status"] == "running"


@pytest.mark.long
def test_a_service_that_does_not_hold_its_answers_is_not_hammered(service, client):
    service.holds = False
    id_ = service.start()
    changes = []
    with pytest.raises(prescore.TimedOut):
        client.wait(id_, timeout=1.5, on_change=changes.append)
    assert len(service.requests) <= 4
    assert len(changes) == 1


@pytest.mark.long
def test_a_service_whose_answers_differ_each_time_is_not_hammered(service, client):
    id_ = service.start()
    with pytest.raises(prescore.TimedOut):
        client.wait(id_, timeout=1, on_change=lambda _: service.change(id_, estimate=time.time()))
    assert len(service.requests) <= 13


@pytest.mark.long
def test_retry_after_says_how_soon_to_ask_again_after_the_first_polls(service, client, monkeypatch):
    monkeypatch.setattr(polling, "FIRST_POLLS", 0)
    service.answer_headers = {"Retry-After": "1"}
    id_ = service.start()
    begun = time.monotonic()
    with service.ending(id_, status="succeeded"):
        client.wait(id_)
    assert 1 <= time.monotonic() - begun < 1.5
    assert len(service.requests) == 2


def test_a_service_that_restarts_meanwhile_is_found_again(service, client):
    id_ = service.start()

    def restart():
        service.wait_until(lambda: len(service.requests) >= 2)
        service.fault("GET", id_, lose="request", times=2)
        service.fault("GET", id_, status=503)
        service.cut_all()
        service.wait_until(lambda: len(service.requests) >= 6)
        service.change(id_, status="succeeded")

    with meanwhile(restart):
        assert client.wait(id_, timeout=10).status == "succeeded"
