"""The GitHub action and the GitLab job in deploy/, run by a shell as their runners do."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from client.junit_schema import validate

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ACTION_FOLDER = DEPLOY / "github-action"
ACTION = yaml.safe_load((ACTION_FOLDER / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((DEPLOY / "gitlab" / "prescore-gate.yml").read_text(encoding="utf-8"))
HOSTILE = "perplexity < $(touch owned) `touch owned`;'\" *"
CLIENT = Path(sys.prefix)


@pytest.fixture
def job(service, client, checkpoint, tmp_path):
    """Runs words in a folder of its own; the service judges whatever comes alike."""
    digest = client.upload_checkpoint(checkpoint)

    def run(*words, verdict="passed", **variables):
        environment = {
            "PATH": os.environ["PATH"],
            "CLIENT": str(CLIENT),
            "client": str(CLIENT),  # of GitLab's job
            "PRESCORE_URL": service.url,
            "TARGET": digest,
            "DATASET": "shapes/test",
            **variables,
        }
        gates = [{"gate": "cider_d >= 0.4", "verdict": verdict, "detail": "0.41 beside 0.4"}]
        with service.ending(status="succeeded", verdict=verdict, gates=gates):
            return subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )

    return run


def _request(service):
    (request,) = service.sent
    return request


def _steps():
    return {step["id"]: step for step in ACTION["runs"]["steps"]}


def test_the_action_gives_its_scripts_all_that_they_read():
    given = _steps()["gate"]["env"]
    script = (ACTION_FOLDER / "gate.sh").read_text(encoding="utf-8")
    read = set(re.findall(r"\$\{?([A-Z_]+)", script)) - {"IFS"}
    assert read | {"PRESCORE_URL", "PRESCORE_KEY", "PRESCORE_AUDIENCE"} == set(given)
    passed = {re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text) for text in given.values()}
    assert {match[1] for match in passed if match} == set(ACTION["inputs"])


def test_nothing_from_outside_is_written_into_a_script():
    """What is in a run block before the shell reads it is run as code."""
    for step in _steps().values():
        assert "${{" not in step["run"]
        assert (ACTION_FOLDER / Path(re.search(r"PATH/(\S+)\"", step["run"])[1])).is_file()


def test_the_actions_example_gives_what_is_required_and_no_more():
    text = (ACTION_FOLDER / "action.yml").read_text(encoding="utf-8")
    comment = "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))
    example = comment[comment.index("   - uses") : comment.index("\n\n The job")]
    used = yaml.safe_load(example)[0]["with"]
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required | {"target"} <= set(used) <= set(ACTION["inputs"])


@pytest.mark.long
def test_the_action_gates_columns_and_captions_in_the_place_of_a_target(service, job, tmp_path):
    (tmp_path / "said.csv").write_text("image,caption\na.jpg,a square\n7,a square\n")
    stored = f"sha256:{'5' * 64}"
    given = {"TARGET": "", "COLUMNS_FILE": stored, "CAPTIONS_FILE": "said.csv"}
    rest = {"GATES": "cider_d > 0", "BASELINE": "", "ARGUMENTS": "", "JUNIT": "gates.xml"}
    first = {"IF_NO_BASELINE": "fail"}
    result = job("sh", ACTION_FOLDER / "gate.sh", verdict="failed", **given, **rest, **first)
    assert result.returncode == 1, result.stderr
    assert _request(service)["columns"] == stored
    assert _request(service)["if_no_baseline"] == "fail"
    assert [one["image"] for one in _request(service)["captions"]] == ["a.jpg", "7"]


@pytest.mark.long
def test_the_action_submits_every_line_as_one_gate(service, job, tmp_path):
    (tmp_path / "summary").touch()
    (tmp_path / "note=two files").touch()
    result = job(
        *("sh", ACTION_FOLDER / "gate.sh"),
        GATES=f"cider_d >= baseline * 1 - 0.01\n\n  meteor > 0 \n{HOSTILE}",
        BASELINE="branch=main",
        ARGUMENTS="--label\nnote=two *\n--postgen\nspice",
        JUNIT="gates.xml",
        GITHUB_ACTIONS="true",
        GITHUB_SHA="abc",
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary"),
        GITHUB_OUTPUT=str(tmp_path / "output"),
    )
    assert result.returncode == 0, result.stderr
    assert _request(service) == {
        "checkpoint": _request(service)["checkpoint"],
        "dataset": "shapes/test",
        "gates": [
            "cider_d >= baseline * 1 - 0.01",
            "meteor > 0",
            HOSTILE,
        ],
        "baseline": "branch=main",
        "postgen": ["spice"],
        "labels": {"commit": "abc", "note": "two *"},
    }
    assert not (tmp_path / "owned").exists()
    validate((tmp_path / "gates.xml").read_bytes())
    assert (tmp_path / "output").read_text() == "verdict=passed\nevaluation=ev_1\n"
    assert "prescore gate: passed" in (tmp_path / "summary").read_text("utf-8")


def test_the_actions_outputs_are_those_that_a_gate_writes(tmp_path):
    assert {one["value"] for one in ACTION["outputs"].values()} == {
        f"${{{{ steps.gate.outputs.{name} }}}}" for name in ("verdict", "evaluation")
    }


STANDARD = ("venv", "pip", "ensurepip", "typing", "json", "sitecustomize", "usercustomize")
OURS = ("prescore", "prescore_command", "httpx", "pydantic", "typer", "rich")


@pytest.fixture
def hostile_workspace(tmp_path):
    """A checkout whose modules leave a mark where they are imported; `PYTHONPATH` names it too."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    mark = f"open({str(tmp_path / 'owned')!r}, 'a').write(__name__ + chr(10))\n"
    for name in (*STANDARD, *OURS):
        (folder / f"{name}.py").write_text(mark)
    (tmp_path / "temporary").mkdir()
    return folder


def _run_in(folder, *words, **variables):
    rest = {"RUNNER_TEMP": str(folder.parent / "temporary"), "TMPDIR": str(folder.parent)}
    environment = {**os.environ, "PYTHONPATH": str(folder), **rest, **variables}
    ended = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    owned = folder.parent / "owned"
    assert not owned.exists(), owned.read_text()
    return ended


NO_SERVICE = {"PRESCORE_URL": "http://127.0.0.1:9", "PRESCORE_KEY": "psk_a_b"}
GATE = {"TARGET": f"sha256:{'5' * 64}", "DATASET": "shapes/test", "GATES": "cider_d > 0"}
ASKED = {"BASELINE": "", "IF_NO_BASELINE": "pass", "ARGUMENTS": "--patience\n0", "JUNIT": "g.xml"}


def test_the_gate_imports_nothing_of_the_workspace(hostile_workspace):
    given = {**NO_SERVICE, **GATE, **ASKED, "CLIENT": str(CLIENT)}
    ended = _run_in(hostile_workspace, "sh", ACTION_FOLDER / "gate.sh", **given)
    assert ended.returncode == 4, ended.stderr


@pytest.mark.slow
def test_an_installation_imports_nothing_of_the_workspace(hostile_workspace):
    output = hostile_workspace.parent / "output"
    script = ACTION_FOLDER / "install.sh"
    ended = _run_in(hostile_workspace, "sh", script, GITHUB_OUTPUT=str(output))
    assert ended.returncode == 0, ended.stderr
    client = Path(output.read_text().strip().removeprefix("client="))
    assert client.parent == hostile_workspace.parent / "temporary"
    given = {**NO_SERVICE, **GATE, **ASKED, "CLIENT": str(client)}
    ended = _run_in(hostile_workspace, "sh", ACTION_FOLDER / "gate.sh", **given)
    assert ended.returncode == 4, ended.stderr


@pytest.mark.slow
def test_the_gitlab_job_imports_nothing_of_the_workspace(hostile_workspace):
    (gate,) = GITLAB.values()
    source = str(DEPLOY.parent / "service" / "client")
    given = {**NO_SERVICE, **gate["variables"], **GATE, "PRESCORE_CLIENT": source}
    script = "\n".join(gate["script"])
    ended = _run_in(hostile_workspace, "sh", "-ec", script, **{**given, **ASKED})
    assert ended.returncode == 4, ended.stderr


def test_every_python_of_a_job_is_isolated():
    (gate,) = GITLAB.values()
    scripts = [path.read_text("utf-8") for path in ACTION_FOLDER.glob("*.sh")]
    for script in [*scripts, "\n".join(gate["script"])]:
        lines = [line for line in script.splitlines() if not line.lstrip().startswith("#")]
        called = re.findall(r"(?:python3?|bin/python)\"? (\S+)", "\n".join(lines))
        assert called
        assert set(called) == {"-I"}


def _gitlab_example():
    """The variables of the job in the file's first lines."""
    text = (DEPLOY / "gitlab" / "prescore-gate.yml").read_text(encoding="utf-8")
    comment = "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))
    example = comment[comment.index("   include:") : comment.index("\n\n In the place")]
    return yaml.safe_load(example)["gate"]["variables"]


def test_the_gitlab_example_gives_what_the_actions_example_does():
    given = set(_gitlab_example())
    assert given == {"PRESCORE_URL", "TARGET", "DATASET", "BASELINE", "GATES"}
    read = set(re.findall(r"\$\{?([A-Z_]+)", (ACTION_FOLDER / "gate.sh").read_text("utf-8")))
    (gate,) = GITLAB.values()
    known = {*gate["variables"], *given}
    assert read - {"IFS", "CLIENT", "JUNIT"} <= known


@pytest.mark.long
# What `sh` does, bash does: the job's script is written for the lesser one.
@pytest.mark.parametrize("shell", [pytest.param("bash", marks=pytest.mark.slow), "sh"])
def test_the_gitlab_job_gates_and_leaves_what_it_says(service, job, tmp_path, shell):
    (gate,) = GITLAB.values()
    *_, command = gate["script"]
    (tmp_path / "note=two files").touch()
    stored = f"sha256:{'5' * 64}"
    variables = {
        **gate["variables"],
        "COLUMNS_FILE": stored,
        "GATES": f"{_gitlab_example()['GATES']}\n  {HOSTILE}",
        "ARGUMENTS": "--label\nnote=two *\n--postgen\nnone",
    }
    where = {"CI_COMMIT_SHA": "abc", "CI_COMMIT_BRANCH": "x"}
    result = job(shell, "-ec", command, verdict="failed", **where, **variables)
    assert result.returncode == 1, result.stderr
    request = _request(service)
    assert request["gates"] == [
        "cider_d >= baseline - 0.01",
        "perplexity <= baseline * 1.02",
        HOSTILE,
    ]
    assert request["labels"] == {"branch": "x", "commit": "abc", "note": "two *"}
    assert (request["columns"], request["baseline"], request["postgen"]) == (stored, "best", [])
    assert request["if_no_baseline"] == "pass"
    assert not (tmp_path / "owned").exists()
    validate((tmp_path / gate["artifacts"]["reports"]["junit"]).read_bytes())
    for path in gate["artifacts"]["paths"]:
        assert json.loads((tmp_path / path).read_text())["verdict"] == "failed"
