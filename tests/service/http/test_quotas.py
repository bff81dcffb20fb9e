"""Limits by key and team over HTTP: what is over is 429 with Retry-After, before it costs. Requests
a minute are counted here at once, and with other processes each second.
"""

import asyncio
import errno
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest

from helpers import onnx_bundle_files, redis_server
from helpers.fleet import bundle, checkpoint, digest, tus_creation, tus_part
from helpers.submissions import client_of_team
from helpers.tars import packed_folder
from helpers.waits import until
from service.contract import limits
from service.contract.errors import LimitReached
from service.contract.quotas import Quotas, QuotaTable
from service.engine import task_queue
from service.engine.task_queue import RedisQueue
from service.http.middleware.rate_limits import RateLimiter, RequestsInProgress

CAPTIONS = [{"image": f"{n}.jpg", "caption": "w1 w2"} for n in range(12)]
ASKED = {"dataset": "tiny/test", "captions": CAPTIONS, "postgen": ["bleu_1"]}


@pytest.fixture
def limited(serve_here, tmp_path):
    """A client of the team red, whose quotas are these; one of blue, which has none."""

    @contextmanager
    def serving(**quotas):
        allowed = QuotaTable(default=Quotas(), teams={"red": Quotas(**quotas)})
        with serve_here(tmp_path, allowed=allowed) as service:
            red, blue = (client_of_team(service, team) for team in ("red", "blue"))
            with red, blue:
                yield red, blue, service

    return serving


def _refused(answer, seconds):
    assert (answer.status_code, answer.json()["code"]) == (429, "limit_reached"), answer.text
    assert 0 < int(answer.headers["retry-after"]) <= seconds
    return answer.json()["detail"]


def test_a_key_has_so_many_requests_at_the_same_time(limited, monkeypatch):
    """Streams are among them. Other teams, and requests for health, are served."""
    monkeypatch.setattr(limits, "IN_PROGRESS", 2)
    with limited() as (red, blue, _):
        with ExitStack() as streams:
            listening = [
                streams.enter_context(red.stream("GET", "/v1/events")).iter_lines()
                for _ in range(2)
            ]
            assert [next(lines) for lines in listening] == [": listening"] * 2
            detail = _refused(red.get("/v1/evaluations"), 1)
            assert detail.startswith("expected at most 2 requests at the same time with the key ")
            assert blue.get("/v1/evaluations").status_code == 200
            assert red.get("/livez").status_code == 200
        until(lambda: red.get("/v1/evaluations").status_code == 200, 20, "the streams' end")


def test_keys_of_a_team_share_what_it_may_have():
    progress = RequestsInProgress()
    one, other = {"key a": 2, "team": 3}, {"key b": 2, "team": 3}
    with ExitStack() as going:
        for names in (one, one, other):
            going.enter_context(progress.hold(names))
        for names, most in ((one, "2 .* key a"), (other, "3 .* team")):
            with pytest.raises(LimitReached, match=most), progress.hold(names):
                pass
    for names in (one, other):
        with progress.hold(names), progress.hold(names):
            pass


def _me(client, name):
    found = {limit["name"]: limit for limit in client.get("/v1/me").json()["limits"]}
    return found.get(name)


def test_requests_of_a_key_are_counted_and_told(limited):
    with limited(requests=5) as (red, blue, _):
        answers = [red.get("/v1/evaluations") for _ in range(6)]
        told = [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers]
        assert told == [f'"requests";r={left}' for left in (4, 3, 2, 1, 0, 0)]
        assert answers[0].headers["ratelimit-policy"] == '"requests";q=5;w=60'
        _refused(answers[5], 60)
        assert blue.get("/v1/evaluations").status_code == 200
        assert "ratelimit" not in blue.get("/v1/evaluations").headers


def test_unfinished_runs_of_a_team_are_limited(limited):
    with limited(runs=2) as (red, blue, service):
        for client in (red, blue):
            assert client.put("/v1/datasets/tiny", content=bundle(12)).status_code == 201
        with service.held():
            asked = [{**ASKED, "postgen": [f"bleu_{n}"]} for n in (1, 2, 3)]
            begun = [red.post("/v1/evaluations", json=each) for each in asked]
            assert [answer.status_code for answer in begun] == [202, 202, 429]
            assert _refused(begun[2], 60) == (
                "Your team has 2 unfinished runs; its limit is 2. Wait until one ends, or "
                "cancel one."
            )
            assert blue.post("/v1/evaluations", json=asked[2]).status_code == 202
            assert _me(red, "runs")["used"] == 2
        assert red.post("/v1/evaluations", json=asked[2]).status_code == 202


def test_seconds_of_computing_are_limited_at_the_next_submission(limited):
    with limited(device_seconds=1e-6) as (red, blue, _):
        for client in (red, blue):
            assert client.put("/v1/datasets/tiny", content=bundle(12)).status_code == 201
            assert client.post("/v1/evaluations", json=ASKED).status_code == 202
        other = {**ASKED, "postgen": ["bleu_2"]}
        assert "seconds of computing today" in _refused(
            red.post("/v1/evaluations", json=other), 86400
        )
        assert red.get("/v1/evaluations").status_code == 200
        assert blue.post("/v1/evaluations", json=other).status_code == 202


def test_a_bundle_that_has_to_be_verified_counts_as_computing(limited, tmp_path):
    """The file is stored, and verified when there is room; one of our own form needs none."""
    content = packed_folder(onnx_bundle_files.write(tmp_path / "mine"))
    place = f"/v1/checkpoints/{digest(content)}"
    with limited(device_seconds=1e-6) as (red, blue, _):
        assert red.put("/v1/datasets/tiny", content=bundle(12)).status_code == 201
        assert red.post("/v1/evaluations", json=ASKED).status_code == 202
        for _ in range(2):
            refusal = _refused(red.put(place, content=content), 86400)
            assert "seconds of computing today" in refusal
        own = checkpoint(seed=1)
        assert red.put(f"/v1/checkpoints/{digest(own)}", content=own).status_code == 201
        assert blue.put(place, content=content).status_code in (200, 201)


def test_bytes_a_day_are_limited_before_they_are_read(limited):
    data = checkpoint(seed=1)
    place = f"/v1/checkpoints/{digest(data)}"
    with limited(upload_bytes=len(data) + 100) as (red, blue, _):
        assert red.put(place, content=data).status_code == 201
        assert _me(red, "upload_bytes")["used"] == len(data)
        other = checkpoint(seed=2)
        said = _refused(red.put(f"/v1/checkpoints/{digest(other)}", content=other), 86400)
        assert f"{len(other):,} more are asked for" in said
        # Without a length it is cut off where the quota ends.
        parts = iter([other[:50], other[50:200], other[200:]])
        cut = red.put(f"/v1/checkpoints/{digest(other)}", content=parts)
        assert (cut.status_code, cut.json()["code"]) == (413, "too_large")
        begin = tus_creation(len(other), kind="checkpoint", digest=digest(other))
        begun = red.post("/v1/uploads", headers=begin)
        assert begun.status_code in (201, 429)
        assert blue.put(f"/v1/checkpoints/{digest(other)}", content=other).status_code == 201


def test_what_is_stored_is_limited_until_something_is_deleted(limited):
    one, two = checkpoint(seed=1), checkpoint(seed=2)
    places = [f"/v1/checkpoints/{digest(data)}" for data in (one, two)]
    with limited(stored_bytes=len(one) + 10) as (red, _, __):
        assert red.put(places[0], content=one).status_code == 201
        assert "delete checkpoints" in _refused(red.put(places[1], content=two), 3600)
        assert _me(red, "stored_bytes")["used"] == len(one)
        assert red.delete(places[0]).status_code == 204
        assert red.put(places[1], content=two).status_code == 201


def test_a_dataset_counts_as_the_bytes_of_its_tar(limited):
    data = bundle(12)
    with limited(stored_bytes=1e9) as (red, _, __):
        assert red.put("/v1/datasets/tiny", content=data).status_code == 201
        assert _me(red, "stored_bytes")["used"] == len(data)


def test_bytes_that_were_lost_by_the_services_fault_are_given_back(limited, monkeypatch):
    data = checkpoint(seed=1)
    place = f"/v1/checkpoints/{digest(data)}"
    with limited(upload_bytes=1e9) as (red, _, service):
        with monkeypatch.context() as at:
            at.setattr(type(service.parts.blobs), "upload", _full)
            assert red.put(place, content=data).status_code == 507
        assert _me(red, "upload_bytes")["used"] == 0
        wrong = red.put(place, content=data[:-1] + b"x")
        assert wrong.status_code == 422
        assert _me(red, "upload_bytes")["used"] == len(data)


@contextmanager
def _full(_):
    yield _FullUpload()


class _FullUpload:
    size = 0
    path = "/nowhere"

    def write(self, *_):
        raise OSError(errno.ENOSPC, "No space left on device")

    flush = write


def test_a_resumable_upload_is_counted_as_it_comes(limited):
    data = checkpoint(seed=1)
    begin = tus_creation(len(data), kind="checkpoint", digest=digest(data))
    with limited(upload_bytes=1e9) as (red, _, __):
        place = red.post("/v1/uploads", headers=begin).headers["location"]
        half = len(data) // 2
        first = red.patch(place, headers=tus_part(0), content=data[:half])
        assert first.status_code == 204
        assert _me(red, "upload_bytes")["used"] == half
        last = red.patch(place, headers=tus_part(half), content=data[half:])
        assert last.status_code == 204
        assert _me(red, "upload_bytes")["used"] == len(data)


NOON = 1_764_072_000.0  # a minute begins


class SumsInMemory:
    """What several processes add up, as Redis would."""

    def __init__(self):
        self.sums = Counter()

    def add_up(self, more, seconds):
        assert seconds >= 60
        self.sums.update(more)
        return {name: self.sums[name] for name in more}


def test_a_minute_has_so_many_and_the_next_one_begins_anew():
    rates = RateLimiter(SumsInMemory())
    left = [rates.count("a", 3, NOON + second).left for second in (0, 1, 2, 59)]
    assert left == [2, 1, 0, -1]
    assert rates.count("a", 3, NOON + 2).is_over
    assert not rates.count("b", 3, NOON + 2).is_over
    assert rates.count("a", 3, NOON + 60).left == 2


def test_the_headers_are_those_of_the_draft():
    rate = RateLimiter(SumsInMemory()).count("a", 60, NOON + 18)
    assert dict(rate.headers) == {
        b"ratelimit-policy": b'"requests";q=60;w=60',
        b"ratelimit": b'"requests";r=59;t=42',
    }


def _exchanged(*rates):
    for one in rates:
        asyncio.run(one.exchange())


def test_what_other_processes_have_counted_counts_after_an_exchange():
    together = SumsInMemory()
    one, two = RateLimiter(together), RateLimiter(together)
    for _ in range(4):
        one.count("a", 10, NOON)
    two.count("a", 10, NOON)
    _exchanged(one, two)
    assert two.count("a", 10, NOON).left == 10 - 4 - 2
    _exchanged(two)
    assert one.count("a", 10, NOON).left == 10 - 5  # what two has counted, it learns when it tells
    _exchanged(one, two)
    assert one.count("a", 10, NOON).left == 10 - 6 - 2


def test_nothing_is_told_twice_nor_of_another_minute():
    together = SumsInMemory()
    rates = RateLimiter(together)
    rates.count("a", 10, NOON)
    _exchanged(rates, rates)
    rates.count("a", 10, NOON + 60)
    _exchanged(rates)
    assert sorted(together.sums.values()) == [1, 1]


@pytest.mark.processes
def test_redis_adds_up_and_forgets(tmp_path):
    server = redis_server.Server(tmp_path)
    server.start()
    try:
        queue = RedisQueue(task_queue.connect_redis(server.url))
        assert queue.add_up({"prescore:requests:1:a": 2}, 120) == {"prescore:requests:1:a": 2}
        both = {"prescore:requests:1:a": 3, "prescore:requests:1:b": 1}
        assert queue.add_up(both, 120) == {"prescore:requests:1:a": 5, "prescore:requests:1:b": 1}
        assert 100 < queue.connection.ttl("prescore:requests:1:a") <= 120
        queue.connection.close()
    finally:
        server.kill()
