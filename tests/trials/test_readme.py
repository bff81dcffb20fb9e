"""README's first ten minutes, typed as they stand there, against the real service."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.documents import blocks, fenced, section

HEADINGS = ("A first score", "Over HTTP", "From Python")
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
def test_the_readmes_commands_curl_and_python_give_scores(fleet, shell):
    commands, curl, _ = map(_lines, HEADINGS)
    scores = shell("sh", "-e", "-c", commands)
    assert "cider_d" in scores
    typed = curl.replace("URL=http://127.0.0.1:8000", f"URL={fleet.url}")
    assert typed != curl
    answer = shell("sh", "-e", "-c", typed)
    assert re.search(r'"perplexity":\{"value":\d', answer), answer[-2000:]
    (code,) = fenced(section("README.md", HEADINGS[2]), "python")
    scores = shell(sys.executable, "-c", code)
    assert {"cider_d", "bleu_4", "meteor", "rouge_l", "perplexity"} <= set(scores.split())
