"""/readyz: 200 where the API takes requests, also without Redis and workers; 503 where it cannot
keep them.
"""

import sqlite3
import subprocess
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa

from helpers import stored_records
from helpers.redis_server import Server
from helpers.submissions import ask_application
from service.contract.assets import AssetFolders
from service.engine import database
from service.engine.blobs import FileBlobs
from service.engine.database import SqlitePageCheck
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import (
    audit,
    metadata,
    runs,
)
from service.engine.task_queue import RedisQueue, connect_redis

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("redis"))
    server.start()
    with redis.Redis(unix_socket_path=str(server.socket), client_name="metrics@here") as worker:
        worker.ping()
        yield server
    server.kill()


def _ready(engine, folder, redis_url):
    queue = RedisQueue(connect_redis(redis_url))
    parts = ServiceParts(Records(engine), FileBlobs(folder), queue, AssetFolders(Path("/nowhere")))
    return ask_application(parts, "GET", "/readyz")


@pytest.fixture
def ready(tmp_path, server):
    """Of a record and objects in these folders, with a worker."""

    def ask(record=tmp_path, objects=tmp_path):
        engine = stored_records.open_empty_record(record)
        try:
            return _ready(engine, objects, server.url)
        finally:
            engine.dispose()

    return ask


def test_it_is_ready_with_a_worker(ready):
    answer = ready()
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ok", "workers": {"inference": 0, "metrics": 1}, "findings": []},
    )


def test_without_redis_it_is_ready_and_says_so(tmp_path):
    server = Server(tmp_path)
    server.start()
    server.kill()
    engine = stored_records.open_empty_record(tmp_path)
    answer = _ready(engine, tmp_path, server.url)
    engine.dispose()
    assert (answer.status_code, answer.json()["workers"]) == (200, {})
    (finding,) = answer.json()["findings"]
    assert finding.startswith("Redis does not answer (ConnectionError)")


@pytest.fixture
def small(tmp_path):
    """A file system of 4 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    made = subprocess.run(mount, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def _fill(folder):
    with (folder / "filling").open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


@pytest.mark.parametrize("full", ["record", "objects"])
def test_on_a_full_disk_it_is_not_ready_until_there_is_room(ready, small, full):
    folders = {full: small}
    assert ready(**folders).status_code == 200
    with pytest.raises(OSError, match="No space left on device"):
        _fill(small)
    answer = ready(**folders)
    assert answer.status_code == 503
    assert "No space left on device" in answer.json()["detail"]
    (small / "filling").unlink()
    assert ready(**folders).status_code == 200
    assert [path.name for path in small.rglob("*") if path.parent.name == "uploads"] == []


def _damage(folder, name):
    """Overwrite the first page of a table, in the middle of the file; the place as a share."""
    (path,) = folder.glob("*.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(query, [name]).fetchone()
    connection.close()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xa5" * size)


def test_pages_are_looked_at_again_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(database, "_WAIT_SECONDS", 60.0)
    monkeypatch.setattr(database, "_SHARE", 0.0)
    engine = stored_records.open_empty_record(tmp_path)
    pages = SqlitePageCheck(engine)
    assert pages.findings() == []
    engine.dispose()
    _damage(tmp_path, "runs")
    assert pages.findings() != []


@pytest.mark.parametrize("table", [runs, audit], ids=str)
def test_on_a_record_that_is_damaged_it_is_not_ready(ready, tmp_path, table):
    assert ready().status_code == 200
    _damage(tmp_path, table.name)
    answer = ready()
    assert answer.status_code == 503
    assert "the record" in answer.json()["detail"]


def test_a_writer_at_work_does_not_make_it_unready(ready, tmp_path):
    engine = stored_records.open_empty_record(tmp_path)
    with engine.begin():  # holds SQLite's only place for a writer
        assert ready().status_code == 200
    engine.dispose()


def test_a_record_that_cannot_be_written_is_not_ready(tmp_path, server):
    engine = stored_records.open_empty_record(tmp_path)
    sa.event.listen(engine, "connect", lambda each, _: each.execute("PRAGMA query_only = ON"))
    answer = _ready(engine, tmp_path, server.url)
    engine.dispose()
    assert answer.status_code == 503
    assert "attempt to write a readonly database" in answer.json()["detail"]


def test_it_leaves_nothing_in_the_record(ready, tmp_path):
    ready()
    engine = stored_records.open_empty_record(tmp_path)
    with engine.connect() as connection:
        many = [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        ]
    engine.dispose()
    assert sum(many) == 0


RUNBOOK = Path(__file__).resolve().parents[3] / "deploy/runbook.md"


def _read_runbook():
    """Fault -> how /livez and /readyz answer."""
    table = RUNBOOK.read_text("utf-8").partition("| fault |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {fault: (live, ready) for fault, live, ready, _ in rows}


def _make_fault(fault, folder):
    """A record in `folder`, with which something is wrong."""
    engine = stored_records.open_empty_record(folder)
    engine.dispose()
    match fault:
        case "the record is away":
            (path,) = folder.glob("*.sqlite")
            path.unlink()
            path.mkdir()
        case "the record is damaged":
            _damage(folder, "runs")
        case "the disk is full":
            with pytest.raises(OSError, match="No space left on device"):
                _fill(folder)
    return engine


@pytest.fixture
def idle(tmp_path_factory):
    """A Redis to which no worker is connected."""
    idle = Server(tmp_path_factory.mktemp("idle"))
    idle.start()
    yield idle
    idle.kill()


@pytest.mark.parametrize("fault", _read_runbook())
def test_faults_are_answered_as_the_runbook_says(fault, small, server, idle):
    urls = {"Redis is away": f"unix://{small}/absent", "there is no worker": idle.url}
    engine = _make_fault(fault, small)
    queue = RedisQueue(connect_redis(urls.get(fault, server.url)))
    parts = ServiceParts(Records(engine), FileBlobs(small), queue, AssetFolders(Path("/nowhere")))
    found = [ask_application(parts, "GET", path) for path in ("/livez", "/readyz")]
    engine.dispose()
    told = [str(each.status_code) for each in found]
    told[1] += ", with a finding" if found[1].json().get("findings") else ""
    assert tuple(told) == _read_runbook()[fault]
