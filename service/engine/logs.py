"""Logs of all processes on stderr: lines for people on a terminal, else one JSON object a line.

Each line has `timestamp` (UTC, RFC 3339), `level`, `event`, `role`, `pid` and the event's fields; a
line about a request has its `request_id`. Libraries' logs from WARNING on are written in the same
form. Tracebacks contain no values of variables.
"""

import io
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from prescore import plain_text

_FIRST = ("timestamp", "level", "event", "role", "pid")
# They have set handlers of their own, which are removed.
_WITH_HANDLERS = ("uvicorn", "uvicorn.access")


def configure_logs(role: str, level: str = "info") -> None:
    """Set up logging, once, at the entry point of a process."""
    common = [*_fields(), _from(role)]
    renderers = _for_people() if sys.stderr.isatty() else _for_programs()
    structlog.configure(
        processors=[*common, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _join_libraries(common, renderers, max(logging.WARNING, logging.getLevelName(level.upper())))


@contextmanager
def write_logs_to(path: Path, level: str) -> Iterator[None]:
    """Write the service's own logs to a file until the end of the block, unless the program has
    said where they go. Libraries' logs stay the program's.
    """
    if structlog.is_configured():
        yield
        return
    with path.open("a", encoding="utf-8") as file:
        structlog.configure(
            processors=[*_fields(), *_for_programs()],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=structlog.WriteLoggerFactory(file),
        )
        try:
            yield
        finally:
            structlog.reset_defaults()


def _join_libraries(common: list[Processor], renderers: list[Processor], level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*common, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    handler.setLevel(level)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _WITH_HANDLERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    logging.captureWarnings(capture=True)


def _fields() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _for_people() -> list[Processor]:
    """Values are quoted and events cleaned, so that logged text cannot steer the terminal."""
    return [
        _plain_event,
        structlog.dev.ConsoleRenderer(repr_native_str=True, exception_formatter=_traceback),
    ]


def _for_programs() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        _in_order,
        structlog.processors.JSONRenderer(default=str),
    ]


def _from(role: str) -> Processor:
    origin = {"role": role, "pid": os.getpid()}

    def add(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        fields.update(origin)
        return fields

    return add


def _plain_event(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    fields["event"] = plain_text.line(str(fields["event"]).rstrip())
    return fields


def _traceback(stream: TextIO, error: ExcInfo) -> None:
    """A traceback whose lines are plain, since an error's text may be another's."""
    written = io.StringIO()
    structlog.dev.plain_traceback(written, error)
    stream.writelines(f"{plain_text.line(line)}\n" for line in written.getvalue().split("\n"))


def _in_order(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    first = {name: fields.pop(name) for name in _FIRST if name in fields}
    return first | dict(fields)
