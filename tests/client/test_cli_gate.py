"""prescore gate: how it ends, what it shows, and what is one run."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.junit_schema import validate
from client.scripted_service import score, task
from helpers import command_app
from prescore.cli.ci_environment import CiJob, find_ci_job

SCRIPT = Path(sys.executable).with_name("prescore")
GATE = "cider_d >= baseline - 0.01"
MEASURED = {"value": 0.41, "interval": [0.38, 0.44], "baseline": 0.4, "difference": 0.01}
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SHA": "abc123",
    "GITHUB_REF_NAME": "main",
    "GITHUB_RUN_ID": "77",
}


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "CI_", "GIT_")):
            monkeypatch.delenv(name)


@pytest.fixture
def gate(service, shapes, quick, monkeypatch, captions):
    """Runs it in this process, on captions for a split that is there."""
    monkeypatch.setenv("PRESCORE_URL", service.url)
    app = command_app.prescore()
    first = ("gate", captions, "--dataset", "shapes/test", "--gate", GATE, "--timeout", 20)
    return lambda *more: CliRunner().invoke(app, list(map(str, (*first, *more))))


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "results.json"
    items = [{"image": "a.jpg", "caption": "a red square"}, {"image_id": 7, "caption": "a"}]
    path.write_text(json.dumps(items))
    return path


def _decided(verdict, detail="cider_d 0.41 >= 0.39", **fields):
    judged = {"gate": GATE, "verdict": verdict, "detail": detail, "scores": {"cider_d": MEASURED}}
    scores = {"cider_d": score(0.41, interval=[0.38, 0.44])}
    return {
        "verdict": verdict,
        "status": "succeeded",
        "gates": [judged],
        "scores": scores,
        **fields,
    }


@contextmanager
def _ending(service, id_="ev_1", **fields):
    """At the client's first look."""

    def end():
        service.wait_until(lambda: service.seen("GET", id_))
        service.change(id_, **fields)

    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()


def _keys(service):
    return [headers["Idempotency-Key"] for _, _, headers in service.seen("POST")]


def _requests(service):
    return [request for request, _ in service.submissions.values()]


# How it ends


@pytest.mark.long
@pytest.mark.parametrize(
    ("end", "code"),
    [
        (_decided("passed"), 0),
        (_decided("failed"), 1),
        (_decided("undecided"), 3),
        (_decided("not_comparable"), 3),
        (_decided("a word of next year"), 3),
        (_decided("failed", status="failed"), 1),
        (_decided("passed", status="failed"), 3),
        (_decided("passed", status="canceled"), 3),
        (_decided(None), 3),
        (_decided("passed", gates=[]), 3),
        (_decided("failed", gates=_decided("passed")["gates"] + _decided("failed")["gates"]), 1),
    ],
)
def test_it_exits_by_the_verdict(service, gate, end, code):
    with _ending(service, **end):
        assert gate().exit_code == code


@pytest.mark.parametrize("choice", [None, "undecided", "pass", "fail"])
def test_the_verdict_of_a_first_run_is_asked_of_the_service(service, gate, choice):
    with _ending(service, **_decided("passed")):
        gate(*(() if choice is None else ("--if-no-baseline", choice)))
    (request,) = _requests(service)
    assert request.get("if_no_baseline") == choice


@pytest.mark.parametrize(
    ("verdict", "options", "told"),
    [
        ("passed", ("--if-no-baseline", "pass"), (1, 1, 0)),
        ("not_comparable", (), (0, 1, 1)),
        ("not_comparable", ("--label", "branch=main"), (0, 0, 1)),
    ],
)
def test_a_first_run_is_told_what_it_needs(service, gate, verdict, options, told):
    """A warning where it passed, the label that it lacks, the option that was not given."""
    first = _decided(verdict, "no baseline yet")
    first["gates"][0]["no_baseline"] = True
    with _ending(service, **first):
        found = gate("--baseline", "branch=main", *options)
    sentences = (
        f"warning: passed with no baseline: {GATE}: no baseline yet",
        "runs that are to be the baseline need --label branch=main",
        "a first run passes with --if-no-baseline pass",
    )
    assert tuple(found.stderr.count(sentence) for sentence in sentences) == told
    assert ("verdict  passed (no baseline)" in found.stdout) == (verdict == "passed")


def test_a_mistyped_label_never_passes_and_is_told_with_the_right_one(service, gate):
    """The service says of it that it is no first run."""
    detail = "no baseline yet: no evaluation has succeeded; did you mean branch=main? if not, …"
    with _ending(service, **_decided("not_comparable", detail)):
        found = gate("--baseline", "branch=mian", "--if-no-baseline", "pass")
    assert found.exit_code == 3
    assert "; did you mean branch=main?" in found.output
    assert "--label branch=mian" not in found.output


def test_a_baseline_that_cannot_be_compared_is_no_first_run(service, gate):
    with _ending(service, **_decided("not_comparable", "computed in another way")):
        assert gate("--if-no-baseline", "pass").exit_code == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "shapes"), "found 'shapes', which has the splits test, val"),
        (("--label", "main"), "expected NAME=VALUE"),
        (("--junit", "absent/gates.xml"), "expected a folder for gates.xml, found none"),
        (("--url", "nonsense"), "expected a URL"),
        (("--until", "now"), "--until"),
        (("--gates", "x"), "No such option"),
    ],
)
def test_wrong_usage_exits_2_and_submits_nothing(service, gate, arguments, message):
    result = gate(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert service.seen("POST") == []


def test_a_refusal_is_usage_and_never_a_gate_that_failed(service, gate):
    problem = {"title": "Refused", "errors": [{"pointer": "/gates/0", "detail": "no metric cidr"}]}
    service.fault("POST", "evaluations", status=422, body=problem)
    result = gate()
    assert result.exit_code == 2
    assert "--gate: no metric cidr" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        *((status, "", 2) for status in (401, 403, 404, 413)),
        *((429, "", 3), (429, "limit_reached", 3), (503, "busy", 3)),
        *((status, "", 4) for status in (500, 502, 503)),
    ],
)
def test_a_service_that_does_not_take_it_is_no_gate_that_failed(
    service, gate, status, code, exit_code
):
    body = {"title": "Refused", "code": code, "detail": "You have 1 unfinished run"}
    service.fault("POST", "evaluations", status=status, body=body, times=10**6)
    result = gate("--patience", 0.05)
    assert result.exit_code == exit_code
    is_for_now = result.stderr.splitlines()[-1] == "refused for now: try again later"
    assert is_for_now == (exit_code == 3)


def test_no_answer_exits_4_and_leaves_reports(gate, tmp_path):
    files = ("--junit", tmp_path / "a.xml", "--json-out", tmp_path / "a.json")
    result = gate("--url", "http://127.0.0.1:1", "--patience", 0, *files)
    assert result.exit_code == 4
    assert "no answer from http://127.0.0.1:1" in result.stderr
    (case,) = validate((tmp_path / "a.xml").read_bytes()).iter("testcase")
    assert case.find("error") is not None
    assert json.loads((tmp_path / "a.json").read_text())["verdict"] is None


def test_a_report_that_cannot_be_written_is_no_pass(service, gate, monkeypatch, tmp_path):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "absent" / "summary"))
    for verdict, code in (("passed", 2), ("failed", 1)):
        with _ending(service, **_decided(verdict)):
            result = gate()
        assert result.exit_code == code
        assert "summary cannot be written" in result.stderr


@pytest.mark.long
def test_ctrl_c_before_there_is_a_run_is_no_verdict_either(service, shapes, tmp_path):
    """Python's own ending by an exception would be 1, which is a gate that failed."""
    os.mkfifo(tmp_path / "slow.safetensors")
    arguments = [tmp_path / "slow.safetensors", "--dataset", "shapes/test", "--gate", GATE]
    environment = {**os.environ, "PRESCORE_URL": service.url}
    process = subprocess.Popen([SCRIPT, "gate", *arguments], env=environment)
    with (tmp_path / "slow.safetensors").open("wb"):  # it is open on the other side: it reads
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


# What it shows and asks


_HEADING = (
    "  gate                        metric   score   interval          baseline  difference  verdict"
)
_ROW = (
    "  cider_d >= baseline - 0.01  cider_d  0.4100  [0.3800, 0.4400]  0.4000    +0.01       failed"
)


def test_the_verdict_is_told_first_and_last(service, gate):
    tasks = [task("bleu"), task("cider_d", "unavailable")]
    end = _decided("failed", "cider_d 0.41 < 0.45", tasks=tasks)
    with _ending(service, **end):
        result = gate()
    assert result.stdout.splitlines() == [
        "ev_1  succeeded  shapes@v1/test",
        "verdict  failed",
        "tasks",
        "  cider_d  unavailable  1/1  0.5 s",
        "scores",
        "  cider_d  0.4100  [0.3800, 0.4400]",
        "gates",
        _HEADING,
        _ROW,
        "failed: cider_d >= baseline - 0.01: cider_d 0.41 < 0.45",
        "failed: 0 of 1 gate passed",
    ]
    news = result.stderr.splitlines()
    assert (news[0], news[-1]) == ("submitted ev_1", "ev_1  succeeded")
    assert news[1] == f"{service.url}/ui/evaluations/ev_1"
    assert "0.41" not in result.stderr


def test_reports_are_written_where_they_are_asked_for(service, gate, tmp_path):
    files = {name: tmp_path / name for name in ("junit", "json-out", "csv")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    with _ending(service, **_decided("failed")):
        result = gate(*options, "--json")
    answer = json.loads(result.stdout)
    assert answer == json.loads(files["json-out"].read_text())
    assert answer["gates"][0]["scores"]["cider_d"]["difference"] == 0.01
    validate(files["junit"].read_bytes())
    with files["csv"].open(newline="", encoding="utf-8") as stream:
        assert [row["verdict"] for row in csv.DictReader(stream)] == ["failed"]


def test_json_stays_alone_on_stdout_in_github(service, gate, monkeypatch):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    with _ending(service, **_decided("failed")):
        result = gate("--json")
    assert json.loads(result.stdout)["verdict"] == "failed"
    assert "\n::error title=prescore gate::" in result.stderr


# What is one run


def test_in_ci_branch_and_commit_become_labels_unless_they_are_given(service, gate, monkeypatch):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    gate("--timeout", 0)
    gate("--timeout", 0, "--label", "branch=mine")
    labels = [request["labels"] for request in _requests(service)]
    assert labels == [
        {"branch": "main", "commit": "abc123"},
        {"branch": "mine", "commit": "abc123"},
    ]


def test_a_job_that_runs_twice_shares_one_run(service, gate, monkeypatch):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    assert "submitted ev_1" in gate("--timeout", 0).stderr.splitlines()
    with _ending(service, **_decided("passed")):
        assert gate().exit_code == 0
    again = gate()  # over, and decided
    assert again.exit_code == 0
    assert again.stderr.splitlines()[:2] == [
        "ev_1 was there already",
        f"{service.url}/ui/evaluations/ev_1",
    ]
    assert "submitted" not in again.stderr
    assert len(service.evaluations) == 1
    assert gate("--gate", "meteor > 0", "--timeout", 0).exit_code == 3
    monkeypatch.setenv("GITHUB_RUN_ID", "78")
    assert gate("--timeout", 0).exit_code == 3
    assert len(service.evaluations) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    "end", [_decided("undecided"), _decided("not_comparable"), {"status": "canceled"}]
)
def test_a_job_that_is_tried_again_gets_a_new_run_where_the_last_decided_nothing(
    service, gate, monkeypatch, end
):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    with _ending(service, **end):
        assert gate().exit_code == 3
    with _ending(service, "ev_2", **_decided("passed")):
        result = gate()
    assert result.exit_code == 0
    assert "ev_1 of this job ended without a verdict: submitting a new run" in result.stderr
    assert len(service.evaluations) == 2


def test_outside_ci_every_gate_is_a_run_unless_told_what_it_is_for(service, gate):
    gate("--timeout", 0)
    gate("--timeout", 0)
    assert len(service.evaluations) == 2
    gate("--timeout", 0, "--once-for", "nightly 7")
    gate("--timeout", 0, "--once-for", "nightly 7")
    assert len(service.evaluations) == 3


def test_a_lost_answer_starts_no_second_run(service, gate):
    service.fault("POST", "evaluations", lose="answer")
    service.fault("GET", "ev_1", lose="answer", times=3)
    with _ending(service, **_decided("passed")):
        result = gate()
    assert result.exit_code == 0
    assert "submitted ev_1" in result.stderr.splitlines()
    assert len(service.evaluations) == 1
    assert len(set(_keys(service))) == 1


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, CiJob()),
        (GITHUB, CiJob("main", "abc123", "77")),
        (
            {**GITHUB, "GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "main"},
            CiJob("12/merge", "abc123", "77"),
        ),
        (
            {**GITHUB, "GITHUB_EVENT_NAME": "pull_request_target"},
            CiJob("", "abc123", "77"),
        ),
        (
            {"CI_COMMIT_SHA": "d", "CI_COMMIT_BRANCH": "main", "CI_PIPELINE_ID": "5"},
            CiJob("main", "d", "5"),
        ),
        (
            {
                "CI_COMMIT_SHA": "d",
                "CI_MERGE_REQUEST_REF_PATH": "refs/merge-requests/1/head",
                "CI_COMMIT_REF_NAME": "main",
            },
            CiJob("refs/merge-requests/1/head", "d", ""),
        ),
        (
            {"GIT_COMMIT": "e", "BRANCH_NAME": "PR-3", "BUILD_TAG": "jenkins-job-9"},
            CiJob("PR-3", "e", "jenkins-job-9"),
        ),
    ],
)
def test_what_a_ci_says_of_its_job(environment, found):
    assert find_ci_job(environment) == found
