from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from helpers import outside
from helpers.fleet import Fleet
from helpers.redis_server import Server

# T36: the same trials on other parts. `slow`, because all of it runs on the embedded ones already.
STANDS_ON = [
    pytest.param("embedded", id="embedded"),
    pytest.param("outside", id="postgresql-redis-s3", marks=pytest.mark.slow),
]


HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("processes")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Redis of the module's own, which its trials may kill."""
    server = Server(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@contextmanager
def _started(request, tmp_path_factory):
    """A service on the parts that the fixture's parameter names."""
    with ExitStack() as stack:
        environment = {}
        if request.param == "outside":
            server = request.getfixturevalue("s3_server")
            environment = stack.enter_context(outside.or_skip(outside.parts(server)))
        yield stack.enter_context(Fleet(tmp_path_factory.mktemp("fleet"), **environment))


@pytest.fixture(params=STANDS_ON)
def empty_fleet(request, tmp_path_factory):
    """A service of the trial's own, with nothing in it."""
    with _started(request, tmp_path_factory) as fleet:
        yield fleet


@pytest.fixture(scope="session", params=STANDS_ON)
def standing(request, tmp_path_factory):
    """A service with one small dataset, for all trials that leave it as they found it."""
    with _started(request, tmp_path_factory) as fleet:
        fleet.add_dataset()
        yield fleet


@pytest.fixture
def fleet(standing):
    """What a trial left unfinished is canceled: the next one finds idle workers. What a trial
    ended is started again by the next one.
    """
    if not standing.stands:
        standing.start()
        _cancel_all(standing)
    yield standing
    if standing.stands:
        _cancel_all(standing)


def _cancel_all(standing):
    with standing.client() as client:
        for status in ("running", "queued"):
            query = {"status": status, "limit": 200}
            for item in client.get("/v1/evaluations", params=query).json()["items"]:
                client.post(f"/v1/evaluations/{item['id']}/cancel")


@pytest.fixture
def client(fleet):
    with fleet.client() as client:
        yield client
