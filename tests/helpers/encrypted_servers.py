"""A Redis and a PostgreSQL of a test's own that speak TLS alone."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import redis

from helpers.certificates import Authority
from helpers.outside import Absent
from helpers.waits import free_port, until

HOST = "localhost"
_NOBODY = "postgres"  # initdb refuses to be run by root


# The system's own: the Redis that is installed with Prescore was built without TLS.
_PLACES = ["/usr/bin", "/usr/local/bin", *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]


def _program(name: str) -> str:
    found = shutil.which(name, path=":".join(_PLACES))
    if found is None:
        raise Absent(f"no {name} on this machine")
    return found


@contextlib.contextmanager
def encrypted_redis(folder: Path, authority: Authority) -> Iterator[int]:
    """Wants a certificate of its clients, by the same authority; gives its port."""
    issued, port = authority.issue(HOST), free_port()
    command = [_program("redis-server"), "--port", "0", "--tls-port", str(port), "--save", ""]
    command += ["--tls-cert-file", str(issued.certificate), "--tls-key-file", str(issued.key)]
    command += ["--tls-ca-cert-file", str(authority.file), "--tls-auth-clients", "yes"]
    command += ["--bind", "127.0.0.1", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            mine = authority.issue("a test")
            until(lambda: _answers(process, port, authority, mine), 10, "a Redis with TLS")
            yield port
        finally:
            process.terminate()


def _answers(process, port, authority, mine) -> bool:
    if process.poll() is not None:
        raise Absent("this redis-server was built without TLS")
    with contextlib.suppress(redis.RedisError):
        files = {"ssl_ca_certs": str(authority.file), "ssl_keyfile": str(mine.key)}
        files["ssl_certfile"] = str(mine.certificate)
        return bool(redis.Redis(HOST, port, ssl=True, **files).ping())
    return False


@contextlib.contextmanager
def encrypted_postgresql(authority: Authority) -> Iterator[int]:
    """Takes passwords over TLS alone (user and password: prescore); gives its port."""
    folder, port = Path(tempfile.mkdtemp(prefix="prescore-tls-")), free_port()
    who = {"user": _NOBODY} if os.geteuid() == 0 else {}
    if who:
        shutil.chown(folder, _NOBODY)
    data, issued = folder / "data", authority.issue(HOST)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **who}
    try:
        command = [_program("initdb"), "-D", str(data), "-U", "prescore", "--auth=trust", "-N"]
        subprocess.run(command, check=True, **quiet)
        for name, file in (("server.crt", issued.certificate), ("server.key", issued.key)):
            copied = data / name
            copied.write_bytes(file.read_bytes())
            copied.chmod(0o600)
            if who:
                shutil.chown(copied, _NOBODY)
        rules = "local all all trust\nhostssl all all all scram-sha-256\n"
        (data / "pg_hba.conf").write_text(rules)
        command = [_program("postgres"), "-D", str(data), "-p", str(port), "-c", "ssl=on"]
        command += ["-c", "fsync=off", "-c", f"unix_socket_directories={folder}"]
        with subprocess.Popen(command, **quiet) as process:
            try:
                until(lambda: _has_password(folder, port), 20, "a PostgreSQL with TLS")
                yield port
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_password(folder: Path, port: int) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        inside = {"host": str(folder), "port": port, "user": "prescore", "dbname": "postgres"}
        with psycopg.connect(**inside) as connection:
            connection.execute("ALTER USER prescore PASSWORD 'prescore'")
        return True
    return False
