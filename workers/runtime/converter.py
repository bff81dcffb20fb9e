"""The process of `prescore worker converter`."""

import os
import signal
from pathlib import Path
from types import FrameType
from typing import NoReturn

from service.contract.settings import Settings
from service.engine import logs
from workers.sandbox import confinement
from workers.sandbox.converter.serving import Bounds, Converter


def serve(path: Path, children: int | None, settings: Settings) -> None:
    """Until SIGTERM or SIGINT."""
    logs.configure("converter", settings.log_level)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    if confinement.missing() is None:
        confinement.keep_from_others()
    bounds = Bounds(children or len(os.sched_getaffinity(0)), settings.task_memory)
    Converter(path, bounds, without=confinement.left_out(settings.sandbox)).serve()


def _stop(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise SystemExit(0)
