"""Opens and migrates the database: SQLite in WAL mode by default, PostgreSQL by URL."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from service.contract.errors import InvalidSetting

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSIONS = sa.table("alembic_version", sa.column("version_num"))  # made by Alembic
BUSY_SECONDS = 10  # how long a writer waits for another writer
# PostgreSQL: how long a statement may take, and how long a transaction may wait for its client's
# next statement. One whose client is stopped or cut off stands in all others' way, until the server
# ends it; leases are 12 s.
STATEMENT_SECONDS = 30
IDLE_SECONDS = 4
# How soon a client notices that the server is gone: 3 + 3 x 2 s of silence.
_TCP = {"keepalives_idle": 3, "keepalives_interval": 2, "keepalives_count": 3}
_CLIENT = {"connect_timeout": 5, "tcp_user_timeout": 9000, **_TCP}
# PostgreSQL: seconds of waiting until the server is asked whether it is still there.
PATIENCE, HURRIED = 5.0, 0.5


def open_database(url: str, patience: float = PATIENCE) -> Engine:
    """An engine for SQLite or PostgreSQL; on SQLite, write transactions run one at a time."""
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        sa.event.listen(engine, "connect", _sqlite_pragmas)
        sa.event.listen(engine, "begin", _sqlite_begin)
        return engine
    if url.startswith("postgresql"):
        engine = sa.create_engine(
            url.replace("postgresql://", "postgresql+psycopg://", 1),
            connect_args=_CLIENT,
            pool_pre_ping=True,  # connections to a restarted server are replaced
        )
        from service.engine.postgresql import PostgresqlConnector  # noqa: PLC0415  only where it is used

        connector = PostgresqlConnector(patience)
        sa.event.listen(
            engine, "do_connect", lambda _, __, these, named: connector(*these, **named)
        )
        sa.event.listen(engine, "connect", _postgresql_limits)
        return engine
    raise InvalidSetting(
        "PRESCORE_DATABASE_URL: expected sqlite:///… or postgresql://…, "
        f"found {url.split(':', maxsplit=1)[0]}:…"
    )


def migrate_database(engine: Engine) -> None:
    """Migrate the tables to this version; InvalidSetting if a later version has made them."""
    found, head = read_revisions(engine)
    if found == head:
        return
    if found is not None and not is_known_revision(found):
        raise InvalidSetting(_later(found))
    with engine.begin() as connection:
        upgrade_tables(connection, "head")


def upgrade_tables(connection: sa.Connection, revision: str) -> None:
    """Migrate the tables to that revision, in the connection's transaction."""
    from alembic import command  # noqa: PLC0415  60 ms, and only new records need it
    from alembic.config import Config  # noqa: PLC0415

    _lift_limits(connection)
    configuration = Config()
    configuration.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, revision)


@contextmanager
def open_snapshot(engine: Engine) -> Iterator[sa.Connection]:
    """A transaction that sees the record as it is at one moment, however long it takes; others
    write meanwhile. On SQLite, what they write stays in the log (`…-wal`) until it ends.
    """
    options: dict[str, Any] = {"reading": True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        _lift_limits(connection)
        yield connection


def _lift_limits(connection: sa.Connection) -> None:
    """Lift the time limits of statements until the transaction's end, for work of minutes."""
    if connection.dialect.name == "postgresql":
        for name in _limits():
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")


def read_revisions(engine: Engine) -> tuple[str | None, str]:
    """The revision of the tables (None: there are no tables yet), and this version's revision."""
    with engine.execution_options(reading=True).connect() as connection:
        if not sa.inspect(connection).has_table(_VERSIONS.name):
            return None, _known()[-1]
        return connection.execute(sa.select(_VERSIONS)).scalar(), _known()[-1]


def is_known_revision(revision: str) -> bool:
    """True if this version has the revision; False for one of a later version."""
    return revision in _known()


def _known() -> list[str]:
    """Revisions of this version, in their order: their files' names begin with them."""
    names = (path.name for path in (_MIGRATIONS / "versions").glob("[0-9]*.py"))
    return sorted(name.partition("_")[0] for name in names)


def check_revision(engine: Engine) -> None:
    """Raise InvalidSetting if the tables are of another version."""
    found, head = read_revisions(engine)
    if found is not None and not is_known_revision(found):
        raise InvalidSetting(_later(found))
    if found != head:
        raise InvalidSetting(
            f"the database is at revision {found}, this version needs {head}: "
            "run `prescore migrate` (or `prescore serve`, which does) first"
        )


def find_damage(engine: Engine, *, quick: bool = False) -> list[str]:
    """The first findings of SQLite in all pages of its file; empty where there are none, and for
    PostgreSQL, which checks its own. It reads the whole file over a new connection, while others go
    on. `quick`: indexes are not compared with their tables.
    """
    if engine.dialect.name != "sqlite":
        return []
    check = "quick_check" if quick else "integrity_check"
    with open_new_connection(engine) as connection:
        found = connection.exec_driver_sql(f"PRAGMA {check}(5)").scalars().all()
    return [line for line in found if line != "ok"]


@contextmanager
def open_new_connection(engine: Engine) -> Iterator[sa.Connection]:
    """A new connection: one that is kept may lead to a file that others no longer reach."""
    new = sa.create_engine(engine.url, pool=engine.pool.recreate())
    try:
        with new.connect() as connection:
            yield connection
    finally:
        new.dispose()


def _later(revision: str) -> str:
    return (
        f"the database is at revision {revision}, which a later version of Prescore has made: "
        "start that version, or use another database or PRESCORE_HOME"
    )


def _sqlite_pragmas(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_sqlite_begin` sends BEGIN
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _postgresql_limits(connection: Any, _: Any) -> None:
    connection.autocommit = True
    for name, seconds in _limits().items():
        connection.execute(f"SET {name} = '{seconds}s'")
    connection.autocommit = False


def _limits() -> dict[str, int]:
    return {
        "statement_timeout": STATEMENT_SECONDS,
        "lock_timeout": BUSY_SECONDS,
        "idle_in_transaction_session_timeout": IDLE_SECONDS,
    }


def _sqlite_begin(connection: sa.Connection) -> None:
    """BEGIN IMMEDIATE, so that a writing transaction waits at its start, not in the middle."""
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


_SHARE = 20.0  # between two looks passes so many times as long as a look took
_LEAST_SECONDS = 5.0
_WAIT_SECONDS = 0.5  # for a look to end; then the findings of the one before are told


class SqlitePageCheck:
    """The damage of SQLite's file, found in the background. Several threads may ask."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._looking: Future[None] | None = None
        self._due = 0.0
        self._findings: Sequence[str] = ()

    def findings(self) -> Sequence[str]:
        """The damage that the last look found; empty for a sound file and for PostgreSQL."""
        if self._engine.dialect.name != "sqlite":
            return ()
        with self._lock:
            if self._looking is None and time.monotonic() >= self._due:
                self._looking = Future()
                Thread(target=self._look, args=(self._looking,), daemon=True).start()
            looking = self._looking
        if looking is not None:
            with suppress(TooLate):
                looking.result(_WAIT_SECONDS)
        return self._findings

    def _look(self, looking: "Future[None]") -> None:
        began = time.monotonic()
        try:
            found = find_damage(self._engine, quick=True)
        except sa.exc.DatabaseError as error:
            found = [str(error.orig)]
        with self._lock:
            self._findings, self._looking = found, None
            ended = time.monotonic()
            self._due = ended + max(_LEAST_SECONDS, _SHARE * (ended - began))
        looking.set_result(None)
