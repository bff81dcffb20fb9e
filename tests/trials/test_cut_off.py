"""An API that is cut off from the record, from Redis or from the object store answers all the same,
and soon; and serves as before when its links are whole again (T61).

Links fall silent: a server that refuses is noticed at once, and one that says nothing is not.
"""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from helpers import interface, outside
from helpers.fleet import ROOT, bundle, checkpoint, digest, free_port, tus_creation, tus_part, until
from helpers.networks import Link
from service.engine import database
from service.runs.kinds import KINDS

LATEST = 2.0  # seconds
BACK = 5.0  # seconds until it serves again
WITHOUT_RECORD = {
    "livez": 200,
    "get_limits": 200,
    "prometheus_metrics": 200,
    "discover_uploads": 204,
    "make_job_key": 401,  # no issuer is trusted, and none is looked up
}
DATASET, CHECKPOINT = bundle(40), checkpoint()
CAPTIONS = [{"image": f"{at}.jpg", "caption": "w1 w2"} for at in range(40)]
FILES = {"upload_dataset": DATASET, "upload_checkpoint": CHECKPOINT}
BODIES = {
    "make_webhook": {"url": "https://example.org/told"},
    "fetch_dataset": {"url": "https://example.org/x.tar", "digest": digest(DATASET)},
    "make_job_key": {"token": "a.b.c"},
    "submit_evaluation": {"captions": CAPTIONS, "dataset": "tiny/test", "postgen": ["rouge_l"]},
    "submit_probes": {"dataset": "tiny/test", "metrics": ["rouge_l"], "tokenizer": "none"},
    "submit_study": {"dataset": "tiny/test"},
    "change_dataset": {"pictures_shown": False},
    **{f"change_{kind.kind.noun}": {"note": "as before"} for kind in KINDS.values()},
}
HEADERS = {
    "create_upload": tus_creation(1000, kind="checkpoint", digest=digest(b"of an upload")),
    "append_upload": tus_part(0),
}
QUERIES = {
    "stream_team_events": {"seconds": 1},
}


class CutApi:
    """An API, and a link to each of its servers."""

    def __init__(self, stack: ExitStack, home, record, wake_ups, store=None) -> None:
        self.links: dict[str, Link] = {}
        environment = {
            "PRESCORE_HOME": str(home),
            "PRESCORE_DATABASE_URL": self._linked(stack, "record", record),
            "PRESCORE_REDIS_URL": self._linked(stack, "redis", wake_ups),
        }
        if store is not None:
            url, variables = outside.new_bucket(store)
            environment |= {"PRESCORE_BLOB_URL": url, **variables}
            environment["AWS_ENDPOINT_URL"] = self._linked(stack, "store", store)
        self.home = home
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        self._log = stack.enter_context((home / "api.log").open("w+"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "service", "api", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=self._log,
            stderr=self._log,
        )
        stack.callback(self._stop)
        self.client = stack.enter_context(
            httpx.Client(base_url=self._url, timeout=30, limits=httpx.Limits(max_connections=100))
        )
        until(self._listens, 30, "an API")
        self.known = self._fill()

    def _linked(self, stack: ExitStack, name: str, url: str) -> str:
        parts = urlsplit(url)
        self.links[name] = stack.enter_context(Link(parts.hostname, parts.port or 5432))
        return url.replace(f"{parts.hostname}:{parts.port}", f"127.0.0.1:{self.links[name].port}")

    def _listens(self) -> bool:
        assert self._process.poll() is None, (self.home / "api.log").read_text()[-2000:]
        with suppress(httpx.TransportError):
            return self.client.get("/livez").is_success
        return False

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _fill(self) -> dict[str, str]:
        """Something of each kind; returns what stands for a path's parameters."""
        known = {"{digest}": digest(CHECKPOINT), "{name}": "tiny", "{image}": "0.jpg"}
        self.client.put("/v1/datasets/tiny", content=DATASET)
        self.client.put(f"/v1/checkpoints/{digest(CHECKPOINT)}", content=CHECKPOINT)
        for name in ("submit_evaluation", "submit_probes"):
            path = next(path for _, path, one in interface.operations() if _is(one, name))
            answer = self.client.post(path, json=BODIES[name])
            assert answer.status_code == 202, answer.text
            known[f"{path}/{{id}}"] = f"{path}/{answer.json()['id']}"
        evaluation = known["/v1/evaluations/{id}"].rsplit("/", 1)[1]
        BODIES["submit_comparison"] = {"a": evaluation, "b": evaluation}
        BODIES["submit_training"] = _training()
        for kind in KINDS.values():
            place = kind.kind.place
            known.setdefault(f"{place}/{{id}}", f"{place}/{kind.kind.new_id()}")
        return known

    def forget_copies(self) -> None:
        """Of objects in the store."""
        for folder in ("objects", "derived"):
            shutil.rmtree(self.home / "copies" / folder, ignore_errors=True)
            (self.home / "copies" / folder).mkdir(parents=True)

    def ask(self, method: str, path: str, operation: str) -> tuple[int, float]:
        """The status of an answer, which is as it is described, and its seconds."""
        for name, value in self.known.items():
            # What is deleted is not asked for again: deletions ask for what is not there.
            path = path.replace(name, value if method != "DELETE" else _another(value))
        began = time.monotonic()
        asked = {
            "content": FILES.get(operation),
            "json": BODIES.get(operation),
            "headers": HEADERS.get(operation),
            "params": QUERIES.get(operation),
        }
        with self.client.stream(method, path, **asked) as answer:
            seconds = time.monotonic() - began
            if answer.status_code != httpx.codes.OK or operation != "stream_events":
                answer.read()
                interface.check(answer)
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                assert int(answer.headers["Retry-After"]) > 0
            return answer.status_code, seconds

    def ask_all(self, pool: ThreadPoolExecutor) -> dict[str, tuple[int, float]]:
        """All operations, many at once."""
        asked = {one[2]: pool.submit(self.ask, *one) for one in OPERATIONS}
        return {name: answer.result() for name, answer in asked.items()}


def _another(value: str) -> str:
    """A name or an identity of the same form, of nothing."""
    return value[:-2] + ("aa" if value[-2:] != "aa" else "bb")


def _is(operation, name):
    return operation["operationId"] == name


def _training():
    captioners = [{"name": f"m{at}", "captions": CAPTIONS} for at in range(3)]
    return {"dataset": "tiny/test", "captioners": captioners}


OPERATIONS = [
    (method, path, one["operationId"])
    for method, path, one in interface.operations()
    if not path.endswith("/cancel")  # what is canceled is not asked for anything again
] + [("POST", "/v1/probes/{id}/cancel", "cancel_probes")]


@contextmanager
def cut_api(home, store=None):
    with ExitStack() as stack:
        url = stack.enter_context(outside.or_skip(outside.postgres_database()))
        wake_ups = stack.enter_context(outside.or_skip(outside.redis_database()))
        engine = database.open_database(url)
        database.migrate_database(engine)
        engine.dispose()
        yield CutApi(stack, home, url, wake_ups, store)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with cut_api(tmp_path_factory.mktemp("cut_off")) as api:
        yield api


@pytest.fixture(scope="module")
def pool():
    # More of them would wait for this process, which is Python, too.
    with ThreadPoolExecutor(16) as pool:
        yield pool


def test_cut_off_from_record_and_redis_all_is_answered_soon_and_then_served_again(api, pool):
    """At the moment of the cut, when all is asked at once, and afterwards."""
    before = api.ask_all(pool)
    for link in api.links.values():
        link.silence()
    for _ in range(2):
        answers = api.ask_all(pool)
        late = {name: found for name, found in answers.items() if found[1] > LATEST}
        assert late == {}
        statuses = {name: status for name, (status, _) in answers.items()}
        assert statuses == {**dict.fromkeys(statuses, 503), **WITHOUT_RECORD}
    for link in api.links.values():
        link.mend()
    mended = time.monotonic()
    until(lambda: api.ask("GET", "/v1/evaluations", "list_evaluations")[0] == 200, BACK, "answers")
    back = time.monotonic() - mended
    assert {name: status for name, (status, _) in api.ask_all(pool).items()} == {
        name: status for name, (status, _) in before.items()
    }
    print(f"at most {max(seconds for _, seconds in answers.values()):.2f} s; back in {back:.2f} s")


def test_cut_off_from_redis_alone_it_takes_requests_without_delay(api, pool):
    """Many at once too: who comes after one that has waited does not wait. The delay counts beside
    the time of as many requests before.
    """

    def submit(numbers):
        found = list(pool.map(lambda number: _submitted(api.client, number), numbers))
        assert {status for status, _ in found} == {202}
        return max(seconds for _, seconds in found)

    usual = submit(range(9, 17))
    api.links["redis"].silence()
    try:
        for many in (range(1), range(1, 9)):
            assert submit(many) < usual + LATEST
        for path, name, wanted in (
            ("/readyz", "readyz", 200),
            ("/v1/workers", "list_workers", 503),
        ):
            status, seconds = api.ask("GET", path, name)
            assert status == wanted
            assert seconds < LATEST
        assert api.ask("GET", "/v1/queues", "list_queues")[0] == 200
    finally:
        api.links["redis"].mend()


def _submitted(client, number):
    """What has to be computed: no other request has asked for it."""
    request = {"checkpoint": digest(CHECKPOINT), "dataset": "tiny/test", "pregen": []}
    began = time.monotonic()
    decoded = {**request, "postgen": ["rouge_l"], "decoding": {"max_words": 50 + number}}
    answer = client.post("/v1/evaluations", json=decoded)
    return answer.status_code, time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["record", "redis", "store"])
def test_each_route_alone_is_answered_soon_after_a_cut(tmp_path, s3_server, cut):
    """Nobody has found out before that a server is silent, and what was read of it is forgotten."""
    with cut_api(tmp_path, s3_server) as api:
        latest = {}
        for one in OPERATIONS:
            api.forget_copies()
            api.links[cut].silence()
            status, seconds = api.ask(*one)
            assert status < 500 or status == 503, one
            latest[one[2]] = status, round(seconds, 2)
            api.links[cut].mend()
            until(lambda one=one: api.ask(*one)[0] < 500, BACK, "an answer")
        print(cut, latest)
        assert [name for name, (_, seconds) in latest.items() if seconds > LATEST] == []
        late = sum(status == 503 for status, _ in latest.values())
        assert late >= {"record": 30, "redis": 1, "store": 3}[cut]
