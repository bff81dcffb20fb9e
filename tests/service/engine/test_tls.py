"""Redis and PostgreSQL over TLS, as URLs ask for it: real servers, which speak nothing else."""

import ssl
from urllib.parse import quote

import pytest
import redis
import sqlalchemy as sa

from helpers import encrypted_servers, outside
from helpers.certificates import Authority
from service.engine import database, task_queue
from service.engine.records import Records
from service.engine.task_queue import RedisQueue


def with_servers(test):
    """Of some seconds; what URLs say, without a server: the last test."""
    return pytest.mark.processes(pytest.mark.slow(test))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An authority that signed nothing here."""
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def redis_port(authority, tmp_path_factory):
    folder = tmp_path_factory.mktemp("redis")
    with outside.or_skip(encrypted_servers.encrypted_redis(folder, authority)) as port:
        yield port


@pytest.fixture(scope="module")
def postgres_port(authority):
    with outside.or_skip(encrypted_servers.encrypted_postgresql(authority)) as port:
        yield port


def _redis_url(port, authority, signed_by=None, host="localhost"):
    options = {"ssl_ca_certs": authority.file}
    if signed_by is not None:
        mine = signed_by.issue("prescore")
        options |= {"ssl_certfile": mine.certificate, "ssl_keyfile": mine.key}
    query = "&".join(f"{name}={quote(str(path))}" for name, path in options.items())
    return f"rediss://{host}:{port}/0?{query}"


@with_servers
def test_redis_is_asked_over_tls_with_a_certificate_of_ours(redis_port, authority):
    connection = task_queue.connect_redis(_redis_url(redis_port, authority, authority), timeout=5)
    task_queue.check_eviction(connection)
    assert set(RedisQueue(connection).workers().values()) == {0}  # over a new connection
    connection.close()


@with_servers
@pytest.mark.parametrize(
    ("known", "signed", "host", "told"),
    [
        ("authority", None, "localhost", "."),  # nobody without a certificate, in changing words
        ("stranger", "authority", "localhost", "certificate verify failed"),
        ("authority", "authority", "127.0.0.1", "mismatch"),
    ],
)
def test_another_redis_or_client_is_refused(request, redis_port, known, signed, host, told):
    signed_by = signed and request.getfixturevalue(signed)
    url = _redis_url(redis_port, request.getfixturevalue(known), signed_by, host)
    with pytest.raises(redis.ConnectionError, match=told):
        task_queue.connect_redis(url, timeout=5).ping()


def _postgres_url(port, mode, authority, host="localhost"):
    options = f"sslmode={mode}&sslrootcert={quote(str(authority.file))}"
    return f"postgresql://prescore:prescore@{host}:{port}/postgres?{options}"


@with_servers
def test_postgresql_is_asked_over_tls_and_its_name_is_checked(postgres_port, authority):
    engine = database.open_database(_postgres_url(postgres_port, "verify-full", authority))
    asked = sa.text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    with engine.connect() as connection:
        assert connection.execute(asked).scalar_one() is True
    database.migrate_database(engine)
    Records(engine).check()
    engine.dispose()


@with_servers
@pytest.mark.parametrize(
    ("mode", "known", "host", "told"),
    [
        ("disable", "authority", "localhost", "no encryption"),
        ("verify-full", "authority", "127.0.0.1", "does not match host name"),
        ("verify-full", "stranger", "localhost", "certificate verify failed"),
    ],
)
def test_another_postgresql_or_one_without_tls_is_refused(
    request, postgres_port, mode, known, host, told
):
    url = _postgres_url(postgres_port, mode, request.getfixturevalue(known), host)
    engine = database.open_database(url)
    with pytest.raises(sa.exc.OperationalError, match=told), engine.connect():
        pass
    engine.dispose()


def test_a_url_of_redis_asks_for_certificate_and_name_unless_it_says_otherwise(authority):
    made = task_queue.connect_redis(_redis_url(1, authority)).connection_pool.make_connection()
    assert isinstance(made, redis.SSLConnection)
    assert made.cert_reqs == ssl.CERT_REQUIRED
    assert made.check_hostname
