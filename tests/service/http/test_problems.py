"""What goes wrong on our side, in process: the record away, and a defect of ours."""

import asyncio
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from helpers import outside, stored_records
from helpers.fleet import bundle, free_port
from helpers.submissions import ask_application
from service.contract.assets import AssetFolders
from service.engine import database
from service.engine.blobs import FileBlobs, open_blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import datasets
from service.engine.task_queue import RedisQueue, connect_redis
from service.http.app import create_app
from service.http.dependencies import AppParts
from service.runs import run_lists


def _get(engine, tmp_path, path):
    return _ask(engine, FileBlobs(tmp_path), "GET", path)


def _ask(engine, blobs, method, path, content=None):
    answer = ask_application(_parts(engine, blobs), method, path, content)
    engine.dispose()
    return answer


def _parts(engine, blobs):
    queue = RedisQueue(connect_redis("unix:///nowhere/redis"))
    return ServiceParts(Records(engine), blobs, queue, AssetFolders(Path("/nowhere")))


def _away():
    return database.open_database("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=1")


@pytest.mark.long
@pytest.mark.parametrize(
    "path", ["/v1/evaluations", "/v1/evaluations/ev_1", "/v1/datasets", "/v1/metrics", "/readyz"]
)
def test_a_record_that_is_away_is_503_and_a_time_to_come_back(tmp_path, path):
    answer = _get(_away(), tmp_path, path)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "5"


def test_a_record_whose_connections_are_all_in_use_is_503_and_a_time_to_come_back(tmp_path):
    url = stored_records.open_empty_record(tmp_path).url
    engine = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with engine.connect():
        answer = _get(engine, tmp_path, "/v1/evaluations")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.json()["detail"] == "the database is busy; try again"
    assert answer.headers["Retry-After"] == "5"


@pytest.mark.parametrize("path", ["/livez", "/metrics"])
def test_what_needs_no_record_is_answered_without_it(tmp_path, path):
    assert _get(_away(), tmp_path, path).status_code == 200


NUL = [
    ("/v1/evaluations/%00", 404),
    ("/v1/evaluations/ev_1%00/events", 404),
    ("/v1/uploads/%00", 404),
    ("/v1/webhooks/%00", 404),
    ("/v1/datasets/%00", 404),
    ("/v1/datasets/a%00@v1", 404),
    ("/v1/evaluations?dataset=%00", 422),
    ("/v1/evaluations?label.a=%00", 422),
    ("/v1/evaluations?label.%00=a", 422),
    (f"/v1/evaluations?cursor={run_lists.write_cursor('evaluations', 1.0, 'ev_1' + chr(0))}", 400),
]


@pytest.mark.long
def test_what_postgresql_cannot_even_compare_never_reaches_it(engine, tmp_path):
    application = create_app(AppParts.on(_parts(engine, FileBlobs(tmp_path))))
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)

    async def ask():
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return [(path, (await client.get(path)).status_code) for path, _ in NUL]

    assert asyncio.run(ask()) == NUL


@pytest.mark.long
def test_a_store_that_is_away_is_503_and_a_time_to_come_back(tmp_path, monkeypatch):
    for name, value in outside.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    engine = stored_records.open_empty_record(tmp_path)
    blobs = open_blobs("s3://bucket", tmp_path)
    answer = _ask(engine, blobs, "PUT", "/v1/datasets/captions", bundle(1))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert answer.headers["Retry-After"] == "5"


def test_a_defect_is_a_problem_that_tells_its_number_and_nothing_else(tmp_path):
    engine = stored_records.open_empty_record(tmp_path)
    row = {"name": "d", "version": 1, "splits": "secret", "created_at": 0.0, "bytes": 0}
    row |= dict.fromkeys(("digest", "captions", "content"), "")
    with engine.begin() as connection:
        connection.execute(datasets.insert().values(**row))
    with capture_logs([merge_contextvars]) as told:
        answer = _get(engine, tmp_path, "/v1/datasets")
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["errors"]) == (500, "internal", [])
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert "JSON" not in answer.text
    assert problem["request_id"] in {line.get("request_id") for line in told if "exc_info" in line}
