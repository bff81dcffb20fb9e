"""prescore webhooks create, list, show, rotate, test, delete"""

import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.models import Webhook, WebhookSecret
from prescore.models.choices import WebhookFormat

webhooks = typer.Typer(
    help="Let a URL be told when runs have ended: make webhooks, look at them, test and delete.",
    no_args_is_help=True,
)
_LONGEST = 2000  # characters of a URL
_LOOK_SECONDS = 0.5  # between two looks whether a test has arrived
_TEST = "webhook.test"
_Id = Annotated[str, typer.Argument(metavar="WH", help="The webhook's id, wh_...")]


@webhooks.command()
@options.expand_groups
def create(
    target: Annotated[
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
    url = _read_url(target, is_secret=format == "slack")
    with console.connect_client(connection) as client:
        webhook = client.make_webhook(url, events=console.split_names(events), format=format)
    _print_secret(webhook, as_json=as_json)


def _read_url(given: str, *, is_secret: bool) -> str:
    if given == "-":
        return sys.stdin.readline(_LONGEST + 2).strip()
    if is_secret:
        raise typer.BadParameter(
            "who knows a URL of Slack's may write there, and others see what a command is started "
            "with: write it to a file, and give `- < FILE`"
        )
    return given


def _print_secret(webhook: WebhookSecret, *, as_json: bool) -> None:
    if not as_json:
        console.print_note(f"{webhook.id} is told of {', '.join(webhook.events)}")
        if webhook.secret is None:
            console.print_note("its format has no signatures, and so no secret")
        else:
            console.print_note("the secret is shown this once: keep it where secrets are kept")
    line = "  ".join(filter(None, (webhook.id, webhook.secret)))
    console.print_answer(webhook, lambda _: [line], as_json=as_json)


@webhooks.command(name="list")
@options.expand_groups
def list_(*, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """List your team's webhooks, the latest first, with what waits and what was lost.

    prescore webhooks list
    prescore webhooks list --json | jq -r '.[] | select(.status == "disabled").id'
    """
    with console.connect_client(connection) as client:
        listed = list(client.webhooks())
    console.print_answers(listed, _format_list, as_json=as_json)


@webhooks.command()
@options.expand_groups
def show(id_: _Id, *, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """Show whether a webhook is active, and what went wrong the last times.

    prescore webhooks show wh_2f9c
    """
    with console.connect_client(connection) as client:
        webhook = client.webhook(id_)
    console.print_answer(webhook, _format_webhook, as_json=as_json)


@webhooks.command()
@options.expand_groups
def rotate(id_: _Id, *, as_json: options.AsJson = False, connection: options.Connection) -> None:
    """Give a webhook another secret, and print it, this once.

    For a day messages are signed by both, so that receivers can change theirs.

        prescore webhooks rotate wh_2f9c > secret.txt
    """
    with console.connect_client(connection) as client:
        webhook = client.rotate_webhook(id_)
    _print_secret(webhook, as_json=as_json)


@webhooks.command(name="test")
@options.expand_groups
def send_test(
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
    with console.connect_client(connection) as client:
        before = client.webhook(id_)
        webhook = client.test_webhook(id_)
        until = time.monotonic() + timeout
        while (problem := _find_problem(before, webhook)) is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            webhook = client.webhook(id_)
    if as_json:
        console.print_json(webhook.model_dump(mode="json"))
    if problem is None and timeout:
        console.end_failed(f"nothing has come of the test of {id_} within {timeout:g} s")
    if problem:
        console.end_failed(f"the test of {id_} did not arrive: {problem}")
    if not as_json:
        state = "is sent" if problem is None else "arrived"
        console.print_lines([f"{id_}  the test {state}"])


def _find_problem(before: Webhook, now: Webhook) -> str | None:
    """Find what went wrong with a test; empty: it arrived; None: nobody knows yet."""
    known = {(error.at, error.message) for error in before.errors}
    for error in now.errors:
        if error.event == _TEST and (error.at, error.message) not in known:
            return error.detail or "no reason is known"
    return "" if now.delivered_at != before.delivered_at else None


@webhooks.command()
@options.expand_groups
def delete(
    ids: Annotated[list[str], typer.Argument(metavar="WH...", help="Webhooks' ids, wh_...")],
    *,
    connection: options.Connection,
) -> None:
    """Delete webhooks, with the messages that wait for them.

    prescore webhooks delete wh_2f9c
    """
    with console.connect_client(connection) as client:
        for id_ in ids:
            client.delete_webhook(id_)
            console.print_note(f"deleted {id_}")


def _format_list(webhooks: Sequence[Webhook]) -> list[str]:
    return text.align_rows(
        (
            *(each.id, each.status, each.url, ", ".join(each.events)),
            f"{each.waiting} waiting, {each.lost} lost",
        )
        for each in webhooks
    )


def _format_webhook(webhook: Webhook) -> list[str]:
    facts = [
        ("id", webhook.id),
        ("url", webhook.url),
        ("events", ", ".join(webhook.events)),
        ("format", webhook.format),
        ("status", webhook.status),
        ("disabled because", webhook.disabled_because or ""),
        ("waiting, lost", f"{webhook.waiting}, {webhook.lost}"),
        ("last arrived", text.format_moment(webhook.delivered_at)),
    ]
    errors = [(text.format_moment(each.at), each.event, each.detail) for each in webhook.errors]
    return [*text.align_facts(facts), *text.align_rows(errors, indent="  ")]
