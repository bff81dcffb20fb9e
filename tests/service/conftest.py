import pytest

from helpers import outside, stored_records
from service.engine.records import Records
from service.runs import evaluation_listener


@pytest.fixture
def records(tmp_path):
    """An empty record on SQLite, to which evaluations listen."""
    evaluation_listener.listen_to_engine()
    engine = stored_records.open_empty_record(tmp_path)
    yield Records(engine)
    engine.dispose()


@pytest.fixture
def on_either(engine):
    """The same on SQLite and PostgreSQL: all statements run on both in some test; races do."""
    return Records(engine)


@pytest.fixture
def bucket(s3_server, monkeypatch):
    """The URL of an empty bucket, which the environment leads to."""
    url, environment = outside.new_bucket(s3_server)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return url


@pytest.fixture
def credentials(monkeypatch):
    """Those of a store that is not there."""
    for name, value in outside.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
