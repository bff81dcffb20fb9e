"""prescore gate in a real shell, as a CI job calls it: its exit codes, files and lost connections.

The shell, the command and the network are real; the service is in this process, and a fleet only
where the command gives up before the run has ended.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from client.junit_schema import validate
from helpers.fleet import LONG, checkpoint, free_port
from helpers.networks import Cut, Network

BIN = Path(sys.executable).parent
OURS = ("PRESCORE_", "GITHUB_", "CI_", "GIT_")
SUBMISSION, LOOK = b"POST /v1/evaluations ", b"GET /v1/evaluations/"
UPLOAD = b"PUT /v1/checkpoints/"


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


def _often(*values):
    """Not in every run: it starts a process, and tests/client has the like without."""
    return pytest.param(*values, marks=pytest.mark.slow)


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


@pytest.mark.slow
def test_exit_1_a_gate_failed(shell, tmp_path):
    line = _gate("cider_d >= 0", "cider_d >= 10", more="--junit gates.xml")
    result = shell(f"{line} || echo and the job ends with $?")
    assert result.stdout.endswith("and the job ends with 1\n")
    (suite,) = validate((tmp_path / "gates.xml").read_bytes())
    assert suite.get("failures") == "1"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (_gate("cidr_d >= 1"), "cider_d"),
        _often(_gate("cider_d >= baseline"), "baseline"),
        _often(_gate("cider_d >= __import__('os')"), "--gate: "),
        _often(_gate("cider_d > 0").replace("tiny/test", "absent/test"), "404"),
        _often(_gate("cider_d > 0", target="absent.safetensors"), "cannot be read"),
        _often(_gate("cider_d > 0", more="--gates x"), "No such option"),
        _often("prescore gate captions.json --dataset tiny/test", "--gate"),
    ],
)
def test_exit_2_usage(shell, line, said):
    result = shell(line)
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.slow
def test_exit_3_a_metric_is_unavailable(shell):
    result = shell(_gate("cider_d > 0", "spice > 0.1"))
    assert result.returncode == 3, result.stderr
    assert "undecided: spice > 0.1: " in result.stdout
    assert "CoreNLP" in result.stdout


@pytest.mark.slow
def test_exit_3_there_is_nothing_to_compare_with(shell):
    result = shell(_gate("cider_d >= baseline", more="--baseline branch=nobodys"))
    assert result.returncode == 3
    assert "not_comparable: cider_d >= baseline: no baseline yet" in result.stdout
    more = "--baseline branch=nobodys --if-no-baseline pass"
    result = shell(_gate("cider_d >= baseline", more=more))
    assert result.returncode == 0
    assert "counted as passed" in result.stdout


@pytest.mark.slow
def test_exit_3_the_run_failed_or_did_not_end_in_time(fleet, shell):
    options = (
        f"--beam {LONG['beam']} --min-words {LONG['min_words']} --max-words {LONG['max_words']}"
    )
    long = _gate("bleu_4 > 0.5", target="model.safetensors", more=options)
    waiting = shell(f"{long} --timeout 0.5 --label trial=waiting", url=fleet.url)
    assert waiting.returncode == 3
    assert "still running after 0.5 s" in waiting.stderr
    identity = waiting.stderr.partition("submitted ")[2].split()[0]
    assert shell(f"prescore cancel {identity}", url=fleet.url).returncode == 0
    failed = shell(f"{long} --deadline 1", url=fleet.url)
    assert failed.returncode == 3
    assert "ended failed" in failed.stderr


@pytest.mark.slow
def test_exit_4_nobody_answers(shell):
    url = f"http://127.0.0.1:{free_port()}"
    result = shell(_gate("cider_d > 0", more="--patience 0.5"), url=url)
    assert result.returncode == 4
    assert f"no answer from {url}" in result.stderr


@pytest.mark.slow
def test_exit_4_the_network_is_cut_and_stays_so(service, shell):
    with Network(service.port, Cut(LOOK, refused=10**6)) as network:
        line = _gate("cider_d > 0", more="--patience 1 --label trial=cut-for-good")
        result = shell(line, url=network.url)
    assert result.returncode == 4
    assert "submitted ev_" in result.stderr
    assert len(_labelled(service, "trial", "cut-for-good")) == 1


@pytest.mark.parametrize(
    "cuts",
    [
        (Cut(SUBMISSION, answered=True, refused=1), Cut(LOOK, refused=1)),
        _often(
            (Cut(UPLOAD), Cut(SUBMISSION), Cut(SUBMISSION, answered=True), Cut(LOOK), Cut(LOOK))
        ),
    ],
    ids=["twice", "everywhere"],
)
def test_a_network_that_is_cut_in_the_middle_duplicates_nothing(service, shell, tmp_path, cuts):
    """What is asked is lost, or what is answered, and then nobody is there for a while."""
    (tmp_path / "model.safetensors").write_bytes(checkpoint(seed=4101 + len(cuts)))
    label = f"cut={len(cuts)}"
    line = _gate("perplexity < 1e6", target="model.safetensors", more=f"--label {label}")
    with Network(service.port, *cuts) as network:
        result = shell(line, url=network.url)
        assert network.cuts == []
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("trying again") >= len(cuts)
    assert len(_labelled(service, *label.split("="))) == 1


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


@pytest.mark.slow
def test_github_gets_a_summary_outputs_and_annotations(shell, tmp_path):
    places = {"GITHUB_STEP_SUMMARY": tmp_path / "summary", "GITHUB_OUTPUT": tmp_path / "output"}
    result = shell(
        _gate("cider_d >= 10", "spice > 0"),
        GITHUB_ACTIONS="true",
        **{name: str(path) for name, path in places.items()},
    )
    assert result.returncode == 1
    assert "\n::error title=prescore gate::cider_d >= 10: cider_d " in result.stderr
    assert "\n::warning title=prescore gate::spice > 0: undecided: " in result.stderr
    assert "verdict=failed\n" in (tmp_path / "output").read_text()
    table = (tmp_path / "summary").read_text("utf-8").splitlines()
    assert sum(line.startswith("|") for line in table) == 4
