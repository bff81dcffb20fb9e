"""Ctrl-C while the command is still being imported or begins: a real process and a real signal."""

import signal
import socket
import subprocess
import sys

import pytest

BEGIN = "from prescore_command import main; main()"
INTERRUPTED = 130


@pytest.mark.parametrize("modules", [1, 250])
def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(modules):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-X", "importtime", "-c", BEGIN, "watch", "ev_1", "--url", url]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            lines = iter(process.stderr)
            next(line for line in lines if line.split()[-1] == "prescore_command")
            for _ in range(modules):
                assert next(lines).startswith("import time:")
            process.send_signal(signal.SIGINT)
            said = [line for line in lines if not line.startswith("import time:")]
            assert process.wait(60) == INTERRUPTED
    assert said == ["stopped\n"]


# A class body in which a KeyboardInterrupt becomes a RuntimeError, as in any class with fields.
INTERRUPTED_MODULE = """
import signal
class Field:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Holder:
    field = Field()
"""
HANGING = "\nsignal.raise_signal(signal.SIGINT)\nwhile True: pass"
IMPORTING = """
from prescore import commands
build = commands.build
def built():
    app = build()
    @app.command()
    def late():
        import interrupted
        print("went on")
        while True:
            pass
    return app
commands.build = built
"""
BUILDING = """
import signal, typer.main
typer.main.get_command = lambda app: signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("moment", "more"),
    [(IMPORTING, ""), (IMPORTING, HANGING), (BUILDING, "")],
    ids=["importing", "a second one while an import hangs", "building"],
)
def test_ctrl_c_before_a_command_works_leaves_no_traceback(tmp_path, moment, more):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_MODULE + more)
    command = [sys.executable, "-c", f"{moment}\n{BEGIN}", "late"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == INTERRUPTED
    assert done.stderr in ({"stopped\n"} if more else {"", "stopped\n"})
