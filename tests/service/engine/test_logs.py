"""What a process of ours says on stderr; each test in a process of its own, as it is used."""

import datetime as dt
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
BEGIN = """
import asyncio, logging, logging.config, warnings
import structlog
from service.engine import logs
log = structlog.get_logger()
"""


def _run(code):
    """The process's id, and its lines."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert out == ""
    return process.pid, [json.loads(line) for line in errors.splitlines()]


def _lines(code):
    return _run(code)[1]


def test_a_line_says_when_how_grave_what_and_who_whatever_is_in_it():
    code = r"""
logs.configure_logs("janitor")
log.info("swept", leases=2)
log.info("a\nb", path="c\u2028d\x85e\x1b[31m", lone="\ud800", thing=ValueError("x"))
"""
    pid, (line, odd) = _run(code)
    when = dt.datetime.fromisoformat(line.pop("timestamp"))
    assert when.utcoffset() == dt.timedelta(0)
    assert abs((dt.datetime.now(dt.UTC) - when).total_seconds()) < 60
    assert line == {"level": "info", "event": "swept", "role": "janitor", "pid": pid, "leases": 2}
    assert (odd["event"], odd["path"]) == ("a\nb", "c\u2028d\x85e\x1b[31m")
    assert odd["thing"] == "x"


@pytest.mark.parametrize(("level", "least"), [("debug", 0), ("info", 1), ("error", 3)])
def test_less_than_the_level_is_not_said_and_of_libraries_less_than_warning(level, least):
    levels = ("debug", "info", "warning", "error")
    code = f'logs.configure_logs("api", "{level}")\n'
    code += f"for each in {levels}:\n getattr(log, each)('x'); "
    code += "getattr(logging.getLogger('rq'), each)('y')"
    lines = _lines(code)
    assert [line["level"] for line in lines if line["event"] == "x"] == [*levels[least:]]
    assert [line["level"] for line in lines if line["event"] == "y"] == [*levels[max(least, 2) :]]


def test_libraries_speak_the_same_way_from_warning_on():
    """Uvicorn has set up handlers of its own by the time that our code is loaded."""
    code = """
from uvicorn.config import LOGGING_CONFIG
logging.config.dictConfig(LOGGING_CONFIG)
logs.configure_logs("api", "debug")
for name in ("uvicorn.error", "uvicorn.access", "rq.worker", "sqlalchemy.pool", "alembic"):
    logging.getLogger(name).info("no")
    logging.getLogger(name).warning("trouble in %s", name)
warnings.warn("careful")
"""
    *lines, warned = _lines(code)
    assert [line["event"] for line in lines] == [f"trouble in {line['logger']}" for line in lines]
    assert len(lines) == 5
    assert {(line["level"], line["role"]) for line in lines} == {("warning", "api")}
    assert "careful" in warned["event"]


def test_the_request_is_named_in_every_line_about_it_and_in_no_other():
    """In threads too, and whoever speaks."""
    code = """
logs.configure_logs("api")
def task():
    log.info("in a thread")
    logging.getLogger("sqlalchemy").warning("in a thread")
async def request(name):
    structlog.contextvars.bind_contextvars(request_id=name)
    await asyncio.to_thread(task)
async def both():
    await asyncio.gather(request("a"), request("b"))
asyncio.run(both())
log.info("beside")
"""
    *within, beside = _lines(code)
    assert sorted(line["request_id"] for line in within) == ["a", "a", "b", "b"]
    assert "request_id" not in beside


def test_an_exception_is_one_line_without_the_values_of_variables():
    code = """
logs.configure_logs("api")
def fail():
    password = "".join(("hush", "hush"))
    raise ValueError("no")
for say in (log.exception, logging.getLogger("rq").exception):
    try: fail()
    except ValueError: say("failed")
"""
    lines = _lines(code)
    assert [line["level"] for line in lines] == ["error", "error"]
    for line in lines:
        assert line["exception"].endswith("ValueError: no")
        assert "hushhush" not in json.dumps(line)


def test_on_a_terminal_it_is_for_people_and_nobody_steers_it():
    code = (
        BEGIN
        + r"""
logs.configure_logs("serve")
log.warning("ended\x1b[41m", name="a\x1b[42mb")
logging.getLogger("rq").warning("job \x1b[43m")
"""
    )
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "ended" in said
    assert "job" in said
    assert not said.startswith("{")
    assert not [code for code in ("\x1b[41m", "\x1b[42m", "\x1b[43m") if code in said]
    assert "a\\x1b[42mb" in said
