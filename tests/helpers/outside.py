"""Servers that a fleet stands on, for tests: PostgreSQL, Redis, an S3-compatible store.

Each gives a place of its own and takes it away again; `Absent` says why there is none.
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

from fleet import free_port, until

POSTGRES = os.environ.get(
    "PRESCORE_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/test"
)
REDIS = os.environ.get("PRESCORE_TEST_REDIS", "redis://127.0.0.1:6379")
REDIS_DATABASES = range(15, 3, -1)
CLAIMS, CLAIM_SECONDS = 3, 7200  # where they are noted, and how long a lost run's stays
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "not-a-real-secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


T = TypeVar("T")


class Absent(Exception):
    """Nobody answers there."""


@contextlib.contextmanager
def postgres_database() -> Iterator[str]:
    """The URL of an empty database."""
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
    """The URL of an empty numbered database, claimed: other runs of tests look for theirs too."""
    claims = redis.Redis.from_url(f"{REDIS}/{CLAIMS}", socket_connect_timeout=2)
    try:
        number = next((number for number in REDIS_DATABASES if _claimed(claims, number)), None)
    except redis.RedisError:
        raise Absent("no Redis: neither PRESCORE_TEST_REDIS nor 127.0.0.1:6379 answers") from None
    if number is None:
        raise Absent("no empty database in the Redis at hand")
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
    """The address of a store of moto's: a real HTTP server that speaks S3's protocol."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _answers(f"http://127.0.0.1:{port}/"), 30, "the store's answer")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def new_bucket(server: str) -> tuple[str, dict[str, str]]:
    """The URL of an empty bucket, and the environment that a client of it needs."""
    name = f"prescore-{uuid.uuid4().hex[:12]}"
    assert httpx.put(f"{server}/{name}").status_code == httpx.codes.OK
    return f"s3://{name}/some/prefix", {**CREDENTIALS, "AWS_ENDPOINT_URL": server}


@contextlib.contextmanager
def parts(server: str) -> Iterator[dict[str, str]]:
    """The environment of a fleet that stands on all three."""
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
    """What `manager` gives; the test is skipped, with the reason, where there is none."""
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
