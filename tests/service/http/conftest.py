import itertools
from contextlib import ExitStack, contextmanager

import pytest

from helpers import outside
from helpers.fleet import bundle, checkpoint
from service.kernel import confinement

SEEDS = itertools.count(7000)
# T36: the same rules on other parts. `slow`, because all of it runs on the embedded ones already.
STANDS_ON = [
    pytest.param("sqlite-files", id="sqlite-files"),
    pytest.param("postgresql-s3", id="postgresql-s3", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=STANDS_ON)
def service(request, serve_here, tmp_path_factory):
    """A service in this process with one small dataset, for the tests of a module."""
    with ExitStack() as stack:
        parts = {}
        if request.param == "postgresql-s3":
            parts = stack.enter_context(_others(request.getfixturevalue("s3_server")))
        home = tmp_path_factory.mktemp("a home")
        service = stack.enter_context(serve_here(home, **parts))
        with service.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
        yield service


@contextmanager
def _others(server):
    """PostgreSQL for the record, an S3-compatible store for blobs."""
    url, environment = outside.new_bucket(server)
    with outside.or_skip(outside.postgres_database()) as record, pytest.MonkeyPatch.context() as at:
        for name, value in environment.items():
            at.setenv(name, value)
        yield {"url": record, "blob_url": url}


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client


@pytest.fixture
def data():
    """A checkpoint that no service has."""
    return checkpoint(seed=next(SEEDS))


@pytest.fixture
def sandbox():
    """For tests of what is opened in the sandbox alone."""
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
