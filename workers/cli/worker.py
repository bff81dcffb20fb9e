"""`prescore worker`: run a worker of a fleet."""

import os
from pathlib import Path
from typing import Annotated

import typer

from service.contract import settings
from service.contract.errors import InvalidSetting
from workers.cli.console import report_errors

worker = typer.Typer(help="Run a worker of a fleet.", no_args_is_help=True)


@worker.command()
def inference() -> None:
    """Run tasks that need a model: prefix scores, columns, captions. Start one per device."""
    _task("inference")


@worker.command()
def metrics() -> None:
    """Run tasks of post-gen metrics."""
    _task("metrics")


@worker.command()
def converter(
    socket: Annotated[
        Path | None,
        typer.Option(help="Where to listen: a Unix socket. Default: PRESCORE_CONVERTER."),
    ] = None,
    children: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Files opened at once. Default: one for each core."),
    ] = None,
) -> None:
    """Open files that may run code, and pictures, in the workers' place: with no network, no
    secrets and no home. Workers on the same machine find it by PRESCORE_CONVERTER.
    """
    from workers.sandbox import converter_server

    with report_errors():
        chosen = settings.load_settings()
        place = socket or chosen.converter
        if place is None:
            raise InvalidSetting("expected --socket or PRESCORE_CONVERTER: where to listen")
        converter_server.serve_converter(place, children, chosen)


def _task(role: str) -> None:
    from service.engine import logs
    from service.engine.tracing import tracers
    from workers.runtime.worker import run_worker

    with report_errors():
        chosen = settings.load_settings()
        logs.configure_logs(f"{role} worker", chosen.log_level)
        run_worker(role, chosen, tracers.choose_tracer(role, os.environ))
