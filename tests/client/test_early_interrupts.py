"""Ctrl-C while the command is still being imported: a real process and a real signal."""

import signal
import socket
import subprocess
import sys

import pytest

BEGIN = "from prescore_command import main; main()"
INTERRUPTED = 130


@pytest.mark.parametrize("modules", [1, 60, 250, 500])
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
