"""`prescore worker`: run a worker of a fleet."""

import typer

from service.contract import settings
from workers.cli.console import errors

worker = typer.Typer(help="Run a worker of a fleet.", no_args_is_help=True)


@worker.command()
def inference() -> None:
    """Run works that need a model: prefix scores, columns, captions. Start one per device."""
    _work("inference")


@worker.command()
def metrics() -> None:
    """Run works of post-gen metrics."""
    _work("metrics")


def _work(role: str) -> None:
    from service.works import logs
    from workers.runtime.worker import serve

    with errors():
        chosen = settings.load()
        logs.configure(f"{role} worker", chosen.log_level)
        serve(role, chosen)
