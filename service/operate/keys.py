"""`prescore keys`: keys made, listed, replaced and revoked."""

import json
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prescore import plain_text
from service.contract import settings
from service.contract.api.field_types import rfc3339, rfc3339_or_none
from service.contract.askers import TEAM, Scope
from service.operate.commands import Home, report_errors

app = typer.Typer(
    no_args_is_help=True,
    help="Make, list, replace and revoke keys, by which others may use the service.",
)
if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.access.keys import KeyRecord
    from service.engine.records import Records

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Identity = Annotated[str, typer.Argument(metavar="ID", help="A key's id (`prescore keys list`).")]

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_DAYS = 3650
_COLUMNS = ("id", "team", "scope", "name", "created", "expires", "used", "state")
_NAME = 100  # characters


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    seconds = 0.0 if found is None else int(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= _LONGEST_DAYS * _UNITS["d"]:
        raise typer.BadParameter(
            f"expected a time like 90d, 12h or 30m, of at most {_LONGEST_DAYS}d, found {text!r:.20}"
        )
    return seconds


def _overlap(text: str) -> float:
    return 0.0 if text == "0" else _seconds(text)


def _team(text: str) -> str:
    if not re.fullmatch(TEAM, text):
        raise typer.BadParameter(
            f"expected a name of lower-case letters, digits, dots, dashes, found {text!r:.80}"
        )
    return text


def _name(text: str) -> str:
    if len(text) > _NAME or not text.isprintable():
        raise typer.BadParameter(f"expected at most {_NAME} printable characters")
    return text


@app.command()
def create(
    team: Annotated[
        str, typer.Option(callback=_team, help="The team whose runs and uploads it shows.")
    ],
    scope: Annotated[Scope, typer.Option(help="What it allows; each includes those before it.")],
    expires: Annotated[
        str | None, typer.Option(help="For how long it is valid, as 90d. Default: for ever.")
    ] = None,
    name: Annotated[
        str, typer.Option(callback=_name, help="What it is for, as `prescore keys list` shows.")
    ] = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make a key, and print it: nobody can see it again.

    From the first key on, nobody may ask without one, not even on this machine. What was there
    before is of the team "local". `read` looks, `submit` begins runs and uploads checkpoints,
    `publish` uploads datasets and sets protected labels, `admin` also sees the list of changes
    and webhooks.

        prescore keys create --team vision --scope submit --expires 90d --name ci
    """
    from service.access import keys

    seconds = None if expires is None else _seconds(expires)
    with _record(home) as records:
        made, text = keys.create_key(records, team, scope, name, seconds)
    _show_made(made, text, as_json=as_json)


@app.command("list")
def list_(
    team: Annotated[str | None, typer.Option(callback=lambda at: at and _team(at))] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """List the keys, the latest first: what they allow, until when, and when they were used."""
    from service.access import keys

    with _record(home) as records:
        found = keys.list_keys(records, team)
    if as_json:
        sys.stdout.write(json.dumps([_described(key) for key in found], indent=1) + "\n")
        return
    rows = [[str(_described(key)[name] or "") for name in _COLUMNS] for key in found]
    widths = [max(map(len, cells)) for cells in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(plain_text.line("  ".join(cells).rstrip()))


@app.command()
def rotate(
    identity: Identity,
    overlap: Annotated[
        str, typer.Option(help="For how long the old one is valid, too, as 24h; 0: not at all.")
    ] = "24h",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make a key in the place of another one, which stays valid for a while, and print it.

    It has the same team, scope and duration.

        prescore keys rotate 4k2m9x0qpz7a --overlap 12h
    """
    from service.access import keys

    seconds = _overlap(overlap)
    with _record(home) as records:
        made, text = keys.rotate_key(records, identity, seconds)
    _show_made(made, text, as_json=as_json)


@app.command()
def revoke(identity: Identity, home: Home = None) -> None:
    """End a key at once. What was made with it stays.

    prescore keys revoke 4k2m9x0qpz7a
    """
    from service.access import keys

    with _record(home) as records:
        ended = keys.revoke_key(records, identity)
    typer.echo(plain_text.line(f"{ended.id} of {ended.team} is revoked"))


@contextmanager
def _record(home: Path | None) -> "Iterator[Records]":
    from service.engine import database
    from service.engine.records import Records
    from service.operate.backups import creation

    with report_errors():
        chosen = settings.load_settings().at(home)
        creation.check_record_exists(chosen)
        engine = database.open_database(chosen.database)
        try:
            database.check_revision(engine)
            yield Records(engine)
        finally:
            engine.dispose()


def _show_made(made: "KeyRecord", text: str, *, as_json: bool) -> None:
    """The key alone goes to stdout, so that a script can take it."""
    if as_json:
        sys.stdout.write(json.dumps({**_described(made), "key": text}, indent=1) + "\n")
        return
    until = "for ever" if made.expires_at is None else f"until {rfc3339(made.expires_at)}"
    told = f"key {made.id} of {made.team} ({made.scope}), valid {until}; it is shown this once:"
    typer.echo(plain_text.line(told), err=True)
    sys.stdout.write(text + "\n")


def _described(key: "KeyRecord") -> dict[str, Any]:
    state = key.ended_by(time.time()) or ("replaced" if key.follower else "valid")
    times = {"created": key.created_at, "expires": key.expires_at, "used": key.used_at}
    named = {"id": key.id, "team": key.team, "scope": str(key.scope), "name": key.name}
    replaced = {"state": state.removeprefix("was ").removeprefix("has "), "follower": key.follower}
    return named | {name: rfc3339_or_none(at) for name, at in times.items()} | replaced
