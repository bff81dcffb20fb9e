"""`prescore backup` and `prescore restore`."""

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from prescore import plain_text
from service.contract import settings
from service.operate.commands import Home, report_errors

_SHOWN = 5
_RUNS = "runs"
_LACKING = 1  # the exit status of a backup that lacks something


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; there must be none yet.")],
    home: Home = None,
) -> None:
    """Write the record and all objects that it names into one file, while the service runs.

    Reads the record at PRESCORE_DATABASE_URL and the objects at PRESCORE_BLOB_URL where these are
    set, else those in the home folder. Exit 0: the backup is whole. Exit 1: it is written, and
    lacks objects that the record names. Exit 2: there is none.

        prescore backup prescore-2026-11-25.tar --home ./prescore-data
    """
    from service.engine import database
    from service.engine.blobs import open_blobs
    from service.engine.records import Records
    from service.operate.backups import creation

    with _errors():
        chosen = settings.load_settings().at(home)
        creation.check_record_exists(chosen)
        engine = database.open_database(chosen.database)
        blobs = open_blobs(chosen.blob_url, chosen.home, copying=False)
        began = time.monotonic()
        try:
            with creation.show_progress() as tell:
                made = creation.make_backup(Records(engine), blobs, file, tell)
        finally:
            engine.dispose()
    seconds = time.monotonic() - began
    counted = f"{_counted(made.rows, made.objects)}, {made.bytes:,} bytes, {seconds:.1f} s"
    typer.echo(plain_text.line(f"{file}: {counted}"))
    if _tell_lacking([*made.lacking, *made.damaged]):
        raise typer.Exit(_LACKING)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `prescore backup` has made.")],
    home: Annotated[
        Path | None, typer.Option(help="An empty folder, as for `prescore serve`.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read the file to its end, and write nothing.")
    ] = False,
) -> None:
    """Restore a backup into an empty home folder.

    Where PRESCORE_DATABASE_URL or PRESCORE_BLOB_URL are set, the record or the objects go there;
    both must be empty. A backup of SQLite may be restored into PostgreSQL, and one of a folder into
    S3, and back. If it is ended before it is whole, nothing starts there until the same command has
    been run again.

        prescore restore prescore-2026-11-25.tar --home ./prescore-again
    """
    from service.operate.backups import creation, restoration

    with _errors():
        if check:
            found = restoration.check_backup(file)
        else:
            with creation.show_progress() as tell:
                found = restoration.restore_backup(file, settings.load_settings().at(home), tell)
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.head.made_at))
    said = "is whole" if check else "restored"
    counted = _counted(found.rows, found.objects)
    typer.echo(plain_text.line(f"{file}: {said}: the record of {moment}, {counted}"))
    if found.lacking:
        typer.echo(f"{found.lacking} objects were missing or damaged in it", err=True)


def _counted(rows: Mapping[str, int], objects: int) -> str:
    return f"{rows.get(_RUNS, 0):,} runs, {objects:,} objects"


def _tell_lacking(lacking: Sequence[str]) -> bool:
    if not lacking:
        return False
    shown = ", ".join(lacking[:_SHOWN])
    typer.echo(
        f"the backup lacks {len(lacking)} objects that the record names, since they are missing or "
        f"damaged: {shown}. Results are computed again when they are asked for; datasets and "
        "checkpoints have to be uploaded again",
        err=True,
    )
    return True


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Report errors. SIGTERM ends the block as Ctrl-C does: half-written files are deleted."""
    from sqlalchemy.exc import OperationalError

    before = signal.signal(signal.SIGTERM, _end)
    try:
        with report_errors():
            yield
    except OperationalError as error:
        told = str(error.orig).splitlines()[0]
        typer.echo(plain_text.line(f"the database cannot be read: {told}"), err=True)
        raise typer.Exit(2) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
    raise KeyboardInterrupt
