"""Servers of a fleet for tests: PostgreSQL, Redis, an S3-compatible store.

Each function creates an empty database or store and deletes it at the end; `Absent` says why there
is none.
"""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

import httpx
import pytest
import redis
import sqlalchemy as sa

from helpers.waits import free_port, until

POSTGRES = os.environ.get(
    "PRESCORE_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/test"
)
REDIS = os.environ.get("PRESCORE_TEST_REDIS", "redis://127.0.0.1:6379")
REDIS_DATABASES = range(15, 3, -1)
# The database of claims, and how long a claim of a killed run stays.
CLAIMS, CLAIM_SECONDS = (3, 7200)
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "not-a-real-secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


T = TypeVar("T")


class Absent(Exception):
    """A server or file for a test is not there."""


@contextlib.contextmanager
def postgres_database() -> Iterator[str]:
    """Create an empty database; gives its URL."""
    name = f"prescore_test_{uuid.uuid4().hex[:12]}"
    server = sa.create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    try:
        with server.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    except sa.exc.OperationalError:
        raise Absent(
            "no PostgreSQL: neither PRESCORE_TEST_POSTGRES nor 127.0.0.1:5432 answers"
        ) from None
    try:
        url = server.url.set(drivername="postgresql", database=name)
        yield url.render_as_string(hide_password=False)
    finally:
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        server.dispose()


@contextlib.contextmanager
def redis_database() -> Iterator[str]:
    """Claim an empty numbered database, since other test runs use others; gives its URL."""
    claims = redis.Redis.from_url(f"{REDIS}/{CLAIMS}", socket_connect_timeout=2)
    try:
        number = next((number for number in REDIS_DATABASES if _claimed(claims, number)), None)
    except redis.RedisError:
        raise Absent("no Redis: neither PRESCORE_TEST_REDIS nor 127.0.0.1:6379 answers") from None
    if number is None:
        raise Absent("this Redis has no empty database")
    try:
        yield f"{REDIS}/{number}"
    finally:
        with redis.Redis.from_url(f"{REDIS}/{number}") as database:
            database.flushdb()
        claims.delete(_claim(number))
        claims.close()


def _claimed(claims: redis.Redis, number: int) -> bool:
    with redis.Redis.from_url(f"{REDIS}/{number}") as database:
        return database.dbsize() == 0 and bool(
            claims.set(_claim(number), "", nx=True, ex=CLAIM_SECONDS)
        )


def _claim(number: int) -> str:
    return f"prescore_test_database_{number}"


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Start moto's S3 server; gives its URL."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    # Small files may come in several parts; what is kept in memory is what moto keeps there.
    sizes = {"S3_UPLOAD_PART_MIN_SIZE": "1", "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": "5241856"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **sizes}
    ) as process:
        try:
            until(lambda: _answers(f"http://127.0.0.1:{port}/"), 30, "the store's answer")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()  # moto may swallow SIGTERM, and has no files


def new_bucket(server: str) -> tuple[str, dict[str, str]]:
    """Create an empty bucket: its URL, and the environment that a client needs."""
    name = f"prescore-{uuid.uuid4().hex[:12]}"
    assert httpx.put(f"{server}/{name}").status_code == httpx.codes.OK
    return f"s3://{name}/some/prefix", {**CREDENTIALS, "AWS_ENDPOINT_URL": server}


@contextlib.contextmanager
def parts(server: str) -> Iterator[dict[str, str]]:
    """The environment of a fleet with all three servers."""
    with postgres_database() as record, redis_database() as wake_ups:
        url, environment = new_bucket(server)
        yield {
            "PRESCORE_DATABASE_URL": record,
            "PRESCORE_REDIS_URL": wake_ups,
            "PRESCORE_BLOB_URL": url,
            **environment,
        }


@contextlib.contextmanager
def or_skip(manager: AbstractContextManager[T]) -> Iterator[T]:
    """What `manager` gives; skips the test, with the reason, if it raises Absent."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(manager)
        except Absent as reason:
            pytest.skip(str(reason))
        yield found


def _answers(address: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(address).status_code < httpx.codes.INTERNAL_SERVER_ERROR
    return False
