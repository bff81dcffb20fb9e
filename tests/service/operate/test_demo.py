"""The demo as a stranger sees it, and the arithmetic at its end."""

import socket
import subprocess
import sys

import pytest
from scipy import stats
from typer.testing import CliRunner

from helpers import command_app
from helpers.fleet import free_port
from service.operate import demo


@pytest.mark.parametrize(
    ("a", "b"), [([1, 2, 3, 4], [1, 3, 2, 4]), ([1, 1, 2, 3], [4, 3, 2, 2]), ([5, 6], [2, 1])]
)
def test_rank_correlation_is_the_usual_one(a, b):
    assert demo.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert demo.spearman([1] * len(b), b) == 0  # what is constant correlates with nothing


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        result = CliRunner().invoke(
            command_app.prescore(), ["demo", "--port", port, "--home", str(tmp_path / "h")]
        )
    assert result.exit_code == 2
    assert f"--port {port}: port {port} cannot be used" in result.stderr
    assert not (tmp_path / "h").exists()


@pytest.mark.slow
def test_the_demo_ends_by_itself_and_leaves_no_process(tmp_path):
    port = str(free_port())
    command = [sys.executable, "-m", "service", "demo", "--once", "--port", port]
    result = subprocess.run(
        [*command, "--home", str(tmp_path / "home")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rank correlation with CIDEr-D" in result.stdout
    assert f"The service was at http://127.0.0.1:{port};" in result.stdout
    assert f"prescore serve --home {tmp_path / 'home'}" in result.stdout
    assert (tmp_path / "home" / "demo.svg").read_text().startswith("<svg")
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False)
    assert not left.stdout
