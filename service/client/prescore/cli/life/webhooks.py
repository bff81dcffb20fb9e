"""prescore webhooks create, list, show, rotate, test, delete"""

import sys
import time
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.client import Client
from prescore.models import Webhook, WebhookFormat, WebhookSecret

webhooks = typer.Typer(
    help="Let a URL be told when runs have ended: make webhooks, look at them, test and delete.",
    no_args_is_help=True,
)
_LONGEST = 2000  # characters of a URL
_LOOK_SECONDS = 0.5  # between two looks whether a test has arrived
_TEST = "webhook.test"
_Id = Annotated[str, typer.Argument(metavar="WH", help="The webhook's id, wh_...")]


@webhooks.command()
@options.spread
def create(
    told: Annotated[
        str,
        typer.Argument(
            metavar="URL|-",
            help="Where runs are told, by https; - reads it from stdin, so that it is in no list "
            "of processes and no shell's history.",
        ),
    ],
    *,
    events: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EVENT",
            help="run.succeeded, run.failed, run.canceled, verdict.passed, verdict.failed, "
            "verdict.undecided, verdict.not_comparable; separated by commas, or given many times. "
            "Default: run.succeeded and run.failed.",
        ),
    ] = None,
    format: Annotated[  # noqa: A002  the contract's name
        WebhookFormat | None,
        typer.Option(help="slack: one line of text, for Slack's incoming webhooks."),
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Let a URL be told of your team's runs from now on, and print the secret, this once.

    Messages are signed by the secret, as standardwebhooks.com describes; it goes to
    stdout and nowhere else. Who knows a URL of Slack's may write there: give it by stdin.

        prescore webhooks create https://hooks.example.com/prescore > secret.txt
        prescore webhooks create - --format slack --events verdict.failed < url.txt
    """
    url = _url(told, is_secret=format is WebhookFormat.SLACK)
    with console.connected(connection) as client:
        made = client.make_webhook(url, events=console.names(events), format=format)
    _show_secret(made, as_json=as_json)


def _url(told: str, *, is_secret: bool) -> str:
    if told == "-":
        return sys.stdin.readline(_LONGEST + 2).strip()
    if is_secret:
        raise typer.BadParameter(
            "who knows a URL of Slack's may write there, and others see what a command is started "
            "with: write it to a file, and give `- < FILE`"
        )
    return told


def _show_secret(made: WebhookSecret, *, as_json: bool) -> None:
    if as_json:
        console.show_json(made)
        return
    console.say(f"{made.id} is told of {', '.join(made.events)}")
    if made.secret is None:
        console.say("its format has no signatures, and so no secret")
        console.show([made.id])
        return
    console.say("the secret is shown this once: keep it where secrets are kept")
    console.show([f"{made.id}  {made.secret}"])


@webhooks.command(name="list")
@options.spread
def list_(*, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """List your team's webhooks, the latest first, with what waits and what was lost.

    prescore webhooks list
    prescore webhooks list --json | jq -r '.[] | select(.status == "disabled").id'
    """
    with console.connected(connection) as client:
        found = list(client.webhooks())
    if as_json:
        console.show_json(*found, many=True)
    else:
        console.show(text.aligned([_row(each) for each in found]))


@webhooks.command()
@options.spread
def show(id_: _Id, *, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """Show whether a webhook is active, and what went wrong the last times.

    prescore webhooks show wh_2f9c
    """
    with console.connected(connection) as client:
        found = client.webhook(id_)
    if as_json:
        console.show_json(found)
    else:
        console.show(_lines(found))


@webhooks.command()
@options.spread
def rotate(id_: _Id, *, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """Give a webhook another secret, and print it, this once.

    For a day messages are signed by both, so that receivers can change theirs.

        prescore webhooks rotate wh_2f9c > secret.txt
    """
    with console.connected(connection) as client:
        made = client.rotate_webhook(id_)
    _show_secret(made, as_json=as_json)


@webhooks.command(name="test")
@options.spread
def try_out(
    id_: _Id,
    *,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for what comes of it; 0: do not wait.")
    ] = 30.0,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Send a webhook the event webhook.test, and tell whether it arrived.

    It is sent once. One that is disabled becomes active again if it arrives. Exits with
    3 if it did not arrive, or not within the time.

        prescore webhooks test wh_2f9c
    """
    with console.connected(connection) as client:
        before = client.webhook(id_)
        found = client.test_webhook(id_)
        until = time.monotonic() + timeout
        while (came := _outcome(before, found)) is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            found = client.webhook(id_)
    if as_json:
        console.show_json(found)
    if came is None and timeout:
        console.fail(f"nothing has come of the test of {id_} within {timeout:g} s")
    if came:
        console.fail(f"the test of {id_} did not arrive: {came}")
    if not as_json:
        console.show([f"{id_}  {'the test is sent' if came is None else 'the test arrived'}"])


def _outcome(before: Webhook, now: Webhook) -> str | None:
    """What went wrong with a test; empty: it arrived; None: nobody knows yet."""
    known = {(error.at, error.message) for error in before.errors}
    for error in now.errors:
        if error.event == _TEST and (error.at, error.message) not in known:
            return error.detail or "no reason is known"
    return "" if now.delivered_at != before.delivered_at else None


@webhooks.command()
@options.spread
def delete(
    ids: Annotated[list[str], typer.Argument(metavar="WH...", help="Webhooks' ids, wh_...")],
    *,
    connection: options.Connection,
) -> None:
    """Delete webhooks, with the messages that wait for them.

    prescore webhooks delete wh_2f9c
    """
    with console.connected(connection) as client:
        _delete(client, ids)


def _delete(client: Client, ids: list[str]) -> None:
    for id_ in ids:
        client.delete_webhook(id_)
        console.say(f"deleted {id_}")


def _row(found: Webhook) -> tuple[str, ...]:
    counts = f"{found.waiting} waiting, {found.lost} lost"
    return found.id, found.status, found.url, ", ".join(found.events), counts


def _lines(found: Webhook) -> list[str]:
    facts = [
        ("id", found.id),
        ("url", found.url),
        ("events", ", ".join(found.events)),
        ("format", found.format),
        ("status", found.status),
        ("disabled because", found.disabled_because or ""),
        ("waiting, lost", f"{found.waiting}, {found.lost}"),
        ("last arrived", text.moment(found.delivered_at)),
    ]
    wrong = [(text.moment(each.at), each.event, each.detail) for each in found.errors]
    return [*text.aligned([fact for fact in facts if fact[1]]), *text.aligned(wrong, indent="  ")]
