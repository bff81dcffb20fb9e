"""The service's commands: the whole service on one machine, or its processes one by one."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from prescore import plain_text
from service.contract import settings
from service.contract.errors import InvalidSetting, PrescoreError
from service.contract.settings import Settings
from service.operate import memory

Home = Annotated[Path | None, typer.Option(help="The folder of all data, as for `prescore serve`.")]
Host = Annotated[str, typer.Option(help="Address to listen at.")]
USUAL_PORT = 8000  # that of PRESCORE_URL's default
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")]


def serve(
    home: Annotated[Path | None, typer.Option(help="The folder of all data.")] = None,
    host: Host = "127.0.0.1",
    port: Port = USUAL_PORT,
) -> None:
    """Run the whole service on this machine: API, workers, janitor, Redis and database.

    Prints its URL when it is ready, and with another port the line to copy for commands in
    other terminals. Ctrl-C ends it and all its processes; started
    again, it continues all runs.

        prescore serve --home ./prescore-data
    """
    from service.access.oidc import trusted_issuers

    with report_errors():
        _check_port(host, port)
        chosen = settings.load_settings().at(home)
        trusted_issuers.read_issuers(chosen.oidc)
        _serve(chosen, host, port)


def api(host: Host = "127.0.0.1", port: Port = USUAL_PORT) -> None:
    """Run only the API, as a part of a fleet. Needs PRESCORE_REDIS_URL."""
    import uvicorn

    from service.http.middleware.connections import BoundedConnection, raise_file_limit

    with report_errors():
        memory.return_freed_memory()
        raise_file_limit()
        uvicorn.run(
            "service.http.app:from_environment",
            factory=True,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # the application believes those that are named
            http=BoundedConnection,
            ws="none",
            timeout_graceful_shutdown=2,  # clients that listen to events never leave
        )


def demo(
    once: Annotated[bool, typer.Option(help="Stop the service and exit at the end.")] = False,
    home: Annotated[
        Path | None,
        typer.Option(help="The folder of the demo's data. Default: a temporary folder."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port to listen at. Default: 8000, or a free one."),
    ] = None,
) -> None:
    """Show Prescore: train a captioner, and score its checkpoints while it trains.

    Takes one or two minutes on two cores, and needs no other machine. On a terminal, the service
    goes on until Ctrl-C; without one, the demo ends by itself.
    """
    import tempfile

    from service.operate import demo as the_demo

    with report_errors():
        if port is not None:
            _check_port(the_demo.HOST, port)
        folder = home or Path(tempfile.mkdtemp(prefix="prescore-demo-"))
        the_demo.run_demo(folder, once=once or not sys.stdin.isatty(), port=port)


def migrate() -> None:
    """Migrate the database to this version: once, before the processes of a fleet start.

    `prescore serve` does this by itself. On PostgreSQL, the roles prescore_api, prescore_janitor
    and prescore_worker get their rights, if the server has them (`deploy/secrets.sh`).
    """
    from service.engine import database, database_roles, logs

    with report_errors():
        chosen = settings.load_settings()
        logs.configure_logs("migrate", chosen.log_level)
        engine = database.open_database(chosen.database)
        database.migrate_database(engine)
        database_roles.grant_rights(engine)


def doctor(
    home: Home = None,
    url: Annotated[
        str,
        typer.Option(envvar="PRESCORE_URL", help="The URL of a running service, if there is one."),
    ] = "http://127.0.0.1:8000",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check this installation: what is installed, what is missing and why, and what to do.

    Takes ten seconds to a minute, since it starts Java and METEOR; what is found is told as it
    comes, and at the end as a table. Exit 0: `prescore serve` works here.
    Exit 1: something that it needs is missing.
    """
    from service.contract import findings
    from service.operate import doctor as the_doctor
    from service.operate import doctor_report

    with report_errors():
        chosen = settings.load_settings().at(home)
        found = the_doctor.examine_installation(
            chosen, url, findings.ignore_finding if as_json else doctor_report.print_finding
        )
    doctor_report.print_findings(found, as_json=as_json)
    raise typer.Exit(0 if doctor_report.is_fit(found) else 1)


def openapi() -> None:
    """Print the HTTP interface's description, the content of `openapi/openapi.json`."""
    import json

    from service.http import app

    typer.echo(json.dumps(app.describe_api(), indent=1, ensure_ascii=False))


def janitor() -> None:
    """Run only the janitor: expired leases, lost wake-ups, deadlines, webhooks. Several may run."""
    from service.engine import logs, service_parts
    from service.operate import janitor
    from service.outbound.client import OutboundClient
    from service.retention.retention_policy import RetentionPolicy
    from service.webhooks.sender import WebhookSender

    with report_errors():
        chosen = settings.load_settings()
        logs.configure_logs("janitor", chosen.log_level)
        connected = service_parts.connect_parts(chosen)
        over = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: over.set())
        WebhookSender(connected, OutboundClient.of(chosen)).start()
        policy = RetentionPolicy(chosen.keep_runs_days, chosen.audit_days, chosen.protected)
        janitor.run_janitor(connected, over.wait, policy)


def _serve(chosen: Settings, host: str, port: int) -> None:
    import httpx

    from service.engine import logs
    from service.operate.supervisor import Supervisor

    logs.configure_logs("serve", chosen.log_level)

    url = f"http://{host}:{port}"

    def is_ready() -> bool:
        try:
            answer = httpx.get(f"{url}/readyz", timeout=1)
        except httpx.HTTPError:
            return False
        return answer.is_success and any(answer.json()["workers"].values())

    def print_url() -> None:
        sys.stdout.write(format_greeting(url, port))
        sys.stdout.flush()

    Supervisor(chosen, host, port).run(print_url, is_ready)


def format_greeting(url: str, port: int) -> str:
    """The text that is printed when the service is ready."""
    export = "" if port == USUAL_PORT else f"export PRESCORE_URL={url}\n"
    return f"Prescore is ready at {url}\n{export}"


def _check_port(host: str, port: int) -> None:
    """Refuse a port that is taken now, since the API's process would fail again and again."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise InvalidSetting(
                f"--port {port}: port {port} cannot be used ({error.strerror}); choose another one"
            ) from None


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error of ours in a line, and exit with 2."""
    try:
        yield
    except PrescoreError as error:
        typer.echo(plain_text.line(f"{error.code}: {error.detail}"), err=True)
        raise typer.Exit(2) from None
