"""Redis and PostgreSQL over TLS, as URLs ask for it: real servers, which speak nothing else."""

import ssl
from urllib.parse import quote

import pytest
import redis
import sqlalchemy as sa

import encrypted_servers
import outside
from certificates import Authority
from service.engine import database, task_queue
from service.engine.records import Records
from service.engine.task_queue import RedisQueue


def with_servers(test):
    """Of some seconds; what URLs say, without a server: the last test."""
    return pytest.mark.processes(pytest.mark.slow(test))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


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
def test_redis_takes_nobody_without_a_certificate(redis_port, authority):
    with pytest.raises(redis.ConnectionError):
        task_queue.connect_redis(_redis_url(redis_port, authority), timeout=5).ping()


@with_servers
def test_a_redis_that_an_unknown_authority_signed_is_refused(redis_port, authority, stranger):
    url = _redis_url(redis_port, stranger, authority)
    with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
        task_queue.connect_redis(url, timeout=5).ping()


@with_servers
def test_a_redis_of_another_name_is_refused(redis_port, authority):
    url = _redis_url(redis_port, authority, authority, host="127.0.0.1")
    with pytest.raises(redis.ConnectionError, match="mismatch"):
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
    ("mode", "host", "told"),
    [
        ("disable", "localhost", "no encryption"),
        ("verify-full", "127.0.0.1", "does not match host name"),
    ],
)
def test_postgresql_without_tls_or_of_another_name_is_refused(
    postgres_port, authority, mode, host, told
):
    engine = database.open_database(_postgres_url(postgres_port, mode, authority, host))
    with pytest.raises(sa.exc.OperationalError, match=told), engine.connect():
        pass
    engine.dispose()


@with_servers
def test_a_postgresql_that_an_unknown_authority_signed_is_refused(postgres_port, stranger):
    engine = database.open_database(_postgres_url(postgres_port, "verify-full", stranger))
    with (
        pytest.raises(sa.exc.OperationalError, match="certificate verify failed"),
        engine.connect(),
    ):
        pass
    engine.dispose()


def test_a_url_of_redis_asks_for_certificate_and_name_unless_it_says_otherwise(authority):
    made = task_queue.connect_redis(_redis_url(1, authority)).connection_pool.make_connection()
    assert isinstance(made, redis.SSLConnection)
    assert made.cert_reqs == ssl.CERT_REQUIRED
    assert made.check_hostname
