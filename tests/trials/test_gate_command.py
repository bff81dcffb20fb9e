"""prescore gate in a real shell, as a CI job calls it: its exit codes, files and lost connections.

The shell, the command and the network are real; the service is in this process. All other exit
codes and reports: tests/client/test_cli_gate.py, tests/client/test_gate_reports.py.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from client.junit_schema import validate
from helpers.fleet import checkpoint
from helpers.networks import Cut, Network

BIN = Path(sys.executable).parent
OURS = ("PRESCORE_", "GITHUB_", "CI_", "GIT_")
SUBMISSION, LOOK = b"POST /v1/evaluations ", b"GET /v1/evaluations/"


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    """Without SPICE's grammar, so that a metric is unavailable."""
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        service.add_dataset()
        yield service


@pytest.fixture
def shell(service, tmp_path):
    """Runs a line in a folder that has captions.json and model.safetensors."""
    said = [{"image_id": 900 + n, "caption": "w2 w3 w4 w5"} for n in range(40)]
    (tmp_path / "captions.json").write_text(json.dumps(said))
    (tmp_path / "model.safetensors").write_bytes(checkpoint(seed=4100))

    def run(line, url=service.url, **variables):
        process = start(line, url, **variables)
        stdout, stderr = process.communicate(timeout=120)
        assert "Traceback" not in stderr
        return subprocess.CompletedProcess(line, process.returncode, stdout, stderr)

    def start(line, url=service.url, **variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=tmp_path,
            env={**clean, "PATH": path, "PRESCORE_URL": url, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    run.start = start
    return run


def _gate(*gates, target="captions.json", more=""):
    asked = " ".join(f"--gate {shlex.quote(gate)}" for gate in gates)
    return f"prescore gate {target} --dataset tiny/test --postgen none {asked} {more}"


def _labelled(service, name, value):
    with service.client() as client:
        return client.get("/v1/evaluations", params={f"label.{name}": value}).json()["items"]


def test_exit_0_every_gate_passed(shell, tmp_path):
    more = "--junit gates.xml --json-out gates.json --csv gates.csv --label branch=main"
    result = shell(_gate("cider_d >= 0", "bleu_4 < 1", more=more))
    assert result.returncode == 0, result.stderr
    assert ["verdict", "passed"] in [row.split() for row in result.stdout.splitlines()]
    cases = list(validate((tmp_path / "gates.xml").read_bytes()).iter("testcase"))
    assert [case.get("name") for case in cases] == ["cider_d >= 0", "bleu_4 < 1"]
    answer = json.loads((tmp_path / "gates.json").read_text())
    assert answer["verdict"] == "passed"
    assert answer["gates"][0]["scores"]["cider_d"]["value"] == answer["scores"]["cider_d"]["value"]
    assert len((tmp_path / "gates.csv").read_text().splitlines()) == 3
    gates = ("cider_d >= baseline - 0.01", "no_significant_drop(bleu_4)")
    again = shell(_gate(*gates, more="--baseline branch=main --json"))
    assert again.returncode == 0, again.stderr
    (measured,) = json.loads(again.stdout)["gates"][0]["scores"].values()
    assert measured["baseline"] == measured["value"]
    assert measured["evaluation"] == answer["id"]
    assert measured["difference"] == 0


def test_exit_2_usage(shell):
    result = shell(_gate("cidr_d >= 1"))
    assert result.returncode == 2
    assert "cider_d" in result.stderr
    assert result.stdout == ""


def test_a_network_that_is_cut_in_the_middle_duplicates_nothing(service, shell):
    """What is asked is lost, or what is answered, and then nobody is there for a while."""
    cuts = (Cut(SUBMISSION, answered=True, refused=1), Cut(LOOK, refused=1))
    line = _gate("perplexity < 1e6", target="model.safetensors", more="--label trial=cut")
    with Network(service.port, *cuts) as network:
        result = shell(line, url=network.url)
        assert network.cuts == []
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("trying again") >= len(cuts)
    assert len(_labelled(service, "trial", "cut")) == 1


def test_two_gates_at_once_on_one_commit_are_one_run(service, shell, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(checkpoint(seed=4102))
    job = {"GITHUB_SHA": "two-at-once", "GITHUB_REF_NAME": "7/merge", "GITHUB_RUN_ID": "99"}
    line = _gate("bleu_4 >= 0", target="model.safetensors", more="--json")
    both = [shell.start(line, **job) for _ in range(2)]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert len({json.loads(stdout)["id"] for stdout, _ in told}) == 1
    (found,) = _labelled(service, "commit", "two-at-once")
    assert found["labels"] == {"commit": "two-at-once", "branch": "7/merge"}
    again = shell(line, **job)
    assert json.loads(again.stdout)["id"] == found["id"]
