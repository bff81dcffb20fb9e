"""What holds a connection of the record up holds nobody up for long (trial 36)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from helpers import outside
from service.engine import database
from service.engine.records import Records


@pytest.fixture
def url():
    with outside.or_skip(outside.postgres_database()) as url:
        yield url


def _write(records):
    began = time.monotonic()
    with records.transaction() as connection:
        connection.execute(sa.select(1))
    return time.monotonic() - began


@pytest.mark.long
def test_a_writer_that_falls_silent_does_not_hold_the_others_up(url, monkeypatch):
    """As one whose link is cut in the midst of its transaction: the server ends that."""
    monkeypatch.setattr(database, "IDLE_SECONDS", 1)
    silent, other = database.open_database(url), database.open_database(url)
    with ThreadPoolExecutor(1) as pool, silent.connect() as connection:
        connection.execute(sa.text("CREATE TABLE half_done (number INTEGER)"))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(0x70726573)))
        waited = pool.submit(_write, Records(other)).result(timeout=9)
        assert waited < 9
        with pytest.raises(sa.exc.DBAPIError):
            connection.execute(sa.select(1))
    assert sa.inspect(other).get_table_names() == []
    assert _write(Records(silent)) < 9  # its next transaction has a new connection
    silent.dispose()
    other.dispose()


def test_nobody_waits_for_the_record_without_end(url):
    engine = database.open_database(url)
    with engine.connect() as connection:
        found = {
            name: connection.execute(sa.text(f"SHOW {name}")).scalar_one()
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        }
    engine.dispose()
    assert list(found.values()) == ["30s", "10s", "4s"]
