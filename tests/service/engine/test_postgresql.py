"""Connections to a PostgreSQL that falls silent (T61)."""

import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import psycopg
import pytest
import sqlalchemy as sa

from helpers import outside
from helpers.fleet import until
from helpers.networks import Link
from service.engine import database, postgresql
from service.engine.postgresql import MonitoredServer


@pytest.fixture
def linked():
    """A link, and an engine that reaches PostgreSQL over it."""
    with outside.or_skip(outside.postgres_database()) as found:
        url = sa.make_url(found)
        with Link(url.host, url.port) as link:
            through = url.set(port=link.port).render_as_string(hide_password=False)
            engine = database.open_database(through, patience=0.1)
            yield link, engine
            engine.dispose()


def _one(engine):
    with engine.connect() as connection:
        return connection.execute(sa.select(1)).scalar()


@pytest.mark.long
def test_a_silent_server_is_an_error_soon_and_forgotten_when_it_answers_again(linked):
    link, engine = linked
    assert _one(engine) == 1
    link.silence()
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(sa.exc.OperationalError, match="does not answer"):
            _one(engine)
    assert time.monotonic() - began < 1.5
    link.mend()
    until(lambda: _answers(engine), 3, "an answer")


def _answers(engine):
    try:
        return _one(engine) == 1
    except sa.exc.OperationalError:
        return False


@pytest.mark.long
def test_a_long_statement_goes_on_as_long_as_the_server_answers_others(linked):
    _, engine = linked
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_sleep(0.5)"))


def test_a_server_that_cannot_be_reached_at_first_is_told_as_the_driver_tells_it():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    engine = database.open_database(f"postgresql://nobody@127.0.0.1:{port}/none")
    with pytest.raises(sa.exc.OperationalError, match="refused") as error:
        _one(engine)
    assert isinstance(error.value.orig, psycopg.OperationalError)


def test_who_asks_at_the_same_time_is_told_by_one_question(monkeypatch):
    asked, waiting, go = [], [], Event()

    class CountedFuture(Future):
        def result(self, timeout=None):
            waiting.append(1)
            return super().result(timeout)

    monkeypatch.setattr(postgresql, "Future", CountedFuture)
    server = MonitoredServer("here", 0, lambda: (asked.append(1), go.wait(60)))
    with ThreadPoolExecutor(8) as pool:
        told = [pool.submit(server.answers) for _ in range(8)]
        until(lambda: len(waiting) == 8, 60, "eight who wait")
        go.set()
        assert all(one.result() for one in told)
    assert len(asked) == 1
