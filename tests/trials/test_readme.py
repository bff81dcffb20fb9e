"""README's first ten minutes, typed as they stand there, against the real service."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documents import blocks, fenced, section

HEADINGS = ("A first score", "From the shell and from Python")
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def shell(standing, here):
    """Runs lines in a folder of the newcomer's own, stopping at the first that fails."""

    def run(*command, **options):
        environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PRESCORE_URL": standing.url,
        }
        result = subprocess.run(
            command,
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        assert result.returncode == 0, (command[-1], result.stdout[-2000:], result.stderr[-2000:])
        return result.stdout

    return run


def _lines(heading):
    """But for what starts the service: that is there already."""
    found = "\n".join(blocks(section("README.md", heading)))
    return "\n".join(
        line for line in found.splitlines() if "doctor" not in line and " serve " not in line
    )


@pytest.mark.slow
def test_the_readmes_curl_gives_a_first_score_and_its_client_the_others(fleet, shell):
    first, further = map(_lines, HEADINGS)
    typed = first.replace("URL=http://127.0.0.1:8000", f"URL={fleet.url}")
    assert typed != first
    answer = shell("sh", "-e", "-c", typed)
    assert re.search(r'"perplexity":\{"value":\d', answer), answer[-2000:]
    board = shell("sh", "-e", "-c", further)
    assert "cider_d" in board
    (code,) = fenced(section("README.md", HEADINGS[1]), "python")
    scores = shell(sys.executable, "-c", code)
    assert {"cider_d", "bleu_4", "meteor", "rouge_l", "perplexity"} <= set(scores.split())
