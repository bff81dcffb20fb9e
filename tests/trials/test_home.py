"""T33, T57: what must not work refuses to start, with a reason; and what home looks like."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa

from helpers.fleet import ROOT, Fleet, free_port, until
from helpers.redis_server import Server
from service.contract.errors import InvalidSetting
from service.engine import database, task_queue
from service.operate import own_redis


def _serve(home, port=None):
    command = [sys.executable, "-m", "service", "serve", "--home", str(home)]
    return subprocess.run(
        [*command, "--port", str(port or free_port())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_second_service_on_one_home_is_refused(fleet):
    pieces = [process.pid for process in fleet.supervisor.children()]  # theirs come and go
    second = _serve(fleet.home)
    assert second.returncode == 2
    assert f"--home {fleet.home}: another `prescore serve` works there" in second.stderr
    assert str(fleet.process.pid) in second.stderr
    with fleet.client() as client:
        assert client.get("/readyz").status_code == 200
    assert [process.pid for process in fleet.supervisor.children()] == pieces


def test_without_workers_the_service_accepts_requests_and_says_so(fleet):
    with fleet.client() as client:
        assert client.get("/readyz").json()["workers"] == {"inference": 1, "metrics": 1}
        fleet.supervisor.suspend()  # so that it starts none again
        try:
            for role in ("inference", "metrics"):
                fleet.find("worker", role).kill()
            (finding,) = until(lambda: _findings(client), 10, "a service without workers")
            assert "there is no worker" in finding
        finally:
            fleet.supervisor.resume()
        until(lambda: not _findings(client), 20, "workers")


def _findings(client):
    return client.get("/readyz").json()["findings"]


def test_home_is_for_its_user_alone_and_redis_for_the_service_alone(fleet):
    assert stat.S_IMODE(fleet.home.stat().st_mode) == 0o700
    if fleet.embedded:
        address = str(fleet.home / "redis" / "socket")
        anybody = redis.Redis(unix_socket_path=address)
        assert anybody.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            anybody.keys()
        rules = fleet.home / "redis" / "users.acl"
        assert stat.S_IMODE(rules.stat().st_mode) == 0o600
        assert "Server initialized" in (fleet.home / "redis" / "log").read_text()


def test_the_rules_of_our_redis_are_those_of_a_fleets_workers():
    """But for the password, which `deploy/secrets.sh` puts into the fleet's."""
    default, _, _, worker = (ROOT / "deploy" / "redis.acl").read_text().splitlines()
    ours = own_redis.RULES.replace("#{digest} ", "").replace("user prescore", "user worker")
    assert ours.splitlines() == [default, worker]


def test_a_record_of_a_later_version_is_refused(tmp_path):
    engine = database.open_database(f"sqlite:///{tmp_path / 'record.sqlite'}")
    database.migrate_database(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InvalidSetting, match="which a later version"):
        database.check_revision(engine)
    engine.dispose()
    refused = _serve(tmp_path)
    assert refused.returncode == 2
    assert "revision 9999, which a later version of Prescore has made" in refused.stderr


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
        port = taken.getsockname()[1]
        refused = _serve(tmp_path, port)
    assert refused.returncode == 2
    assert f"port {port} cannot be used (Address already in use)" in refused.stderr


def _ends(fleet):
    """How often Redis has ended."""
    return sum(
        '"ended"' in line and '"redis"' in line for line in fleet.log.read_text().splitlines()
    )


def _answers(fleet):
    with contextlib.suppress(redis.RedisError):
        return fleet.redis.ping()


@pytest.mark.slow
def test_a_redis_that_cannot_be_started_again_ends_nothing(tmp_path):
    """Its folder is away for a while."""
    with Fleet(tmp_path / "home") as fleet:
        server = Path(own_redis._program()).name
        others = [process.pid for process in fleet.family() if process.name() != server]
        (fleet.home / "redis").rename(fleet.home / "away")
        fleet.find(server).kill()
        until(lambda: _ends(fleet) >= 2, 20, "a Redis that ends again")
        (fleet.home / "away").rename(fleet.home / "redis")
        until(lambda: _answers(fleet), 20, "Redis")
        assert [each.pid for each in fleet.family() if each.name() != server] == others
