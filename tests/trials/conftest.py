from contextlib import ExitStack

import pytest

import outside
from fleet import Fleet, bundle

# T36: the same trials on other parts. `slow`, because all of it runs on the embedded ones already.
STANDS_ON = [
    pytest.param("embedded", id="embedded"),
    pytest.param("outside", id="postgresql-redis-s3", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=STANDS_ON)
def fleet(request, tmp_path_factory):
    """A service with one small dataset, for the trials of a module."""
    with ExitStack() as stack:
        environment = {}
        if request.param == "outside":
            server = request.getfixturevalue("s3_server")
            environment = stack.enter_context(outside.or_skip(outside.parts(server)))
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), **environment).start()
        stack.callback(fleet.stop)
        with fleet.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
        yield fleet


@pytest.fixture
def client(fleet):
    with fleet.client() as client:
        yield client
