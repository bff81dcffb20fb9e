"""T33: what must not work refuses to start, with a reason."""

import os
import socket
import subprocess
import sys

import pytest

from helpers.redis_server import Server
from service.contract.errors import InvalidSetting
from service.engine import database, task_queue


@pytest.fixture
def forgetful(tmp_path):
    """A Redis that drops keys when memory is short."""
    server = Server(tmp_path, "allkeys-lru")
    server.start()
    yield task_queue.connect_redis(server.url)
    server.kill()


def test_a_redis_that_may_forget_is_refused(forgetful):
    with pytest.raises(InvalidSetting, match="allkeys-lru, expected noeviction"):
        task_queue.check_eviction(forgetful)


def test_migrate_brings_the_tables_to_this_version(tmp_path):
    url = f"sqlite:///{tmp_path / 'record.sqlite'}"
    engine = database.open_database(url)
    with pytest.raises(InvalidSetting, match="revision None, this version needs"):
        database.check_revision(engine)
    command = [sys.executable, "-m", "service", "migrate"]
    environment = {**os.environ, "PRESCORE_DATABASE_URL": url}
    subprocess.run(command, check=True, env=environment, timeout=60)
    database.check_revision(engine)
    engine.dispose()


def test_a_database_of_an_unknown_kind_is_refused_without_its_password():
    with pytest.raises(InvalidSetting) as caught:
        database.open_database("mysql://user:secret@host/db")
    assert "secret" not in str(caught.value)


def test_a_port_that_is_taken_is_said_to_be(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "service", "serve", "--home", str(tmp_path)]
        result = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, check=False, timeout=30
        )
    assert result.returncode == 2
    assert f"port {port} cannot be used (Address already in use)" in result.stderr
