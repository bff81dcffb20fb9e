"""prescore gate: how it ends, what it shows, and what is one run."""

import csv
import json
import signal

import pytest

from client.junit_schema import validate
from client.scripted_service import score, task
from prescore.cli.ci_environment import CiJob, find_ci_job
from prescore.files import bodies

GATE = "cider_d >= baseline - 0.01"
MEASURED = {"value": 0.41, "interval": [0.38, 0.44], "baseline": 0.4, "difference": 0.01}
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SHA": "abc123",
    "GITHUB_REF_NAME": "main",
    "GITHUB_RUN_ID": "77",
}


@pytest.fixture
def gate(prescore, captions):
    """On captions for a split that is there."""
    first = ("gate", captions, "--dataset", "shapes/test", "--gate", GATE, "--timeout", 20)
    return lambda *more: prescore(*first, *more)


@pytest.fixture
def _in_github(monkeypatch):
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)


in_github = pytest.mark.usefixtures("_in_github")


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


# How it ends


@pytest.mark.parametrize(
    ("verdict", "options", "told"),
    [
        ("passed", ("--if-no-baseline", "pass"), (1, 1, 0)),
        ("not_comparable", (), (0, 1, 1)),
        ("not_comparable", ("--label", "branch=main"), (0, 0, 1)),
    ],
)
def test_a_first_run_is_told_what_it_needs(service, prescore, gate, verdict, options, told):
    """A warning where it passed, the label that it lacks, the option that was not given."""
    first = _decided(verdict, "no baseline yet")
    first["gates"][0]["no_baseline"] = True
    with service.ending(**first):
        found = gate("--baseline", "branch=main", *options)
    sentences = (
        f"warning: passed with no baseline: {GATE}: no baseline yet",
        "runs that are to be the baseline need --label branch=main",
        "a first run passes with --if-no-baseline pass",
    )
    assert tuple(found.stderr.count(sentence) for sentence in sentences) == told
    assert ("verdict  passed (no baseline)" in found.stdout) == (verdict == "passed")
    assert ("passed (no baseline)" in prescore("list").stdout) == (verdict == "passed")


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
        *((status, "", 2) for status in (401, 413)),
        *((429, "limit_reached", 3), (503, "busy", 3)),
        *((status, "", 4) for status in (500, 503)),
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
    assert case.get("name") == GATE
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["error"]["detail"] == case.find("error").text.strip()
    assert told["error"]["detail"].startswith(case.find("error").get("message"))
    assert "PRESCORE_URL" in case.find("error").text
    assert told["id"] is told["verdict"] is None
    assert told["gates"][0]["gate"] == GATE
    assert told["error"]["detail"].startswith("no answer from")


@in_github
def test_a_report_that_cannot_be_written_is_no_pass(service, gate, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "absent" / "summary"))
    for verdict, code in (("passed", 2), ("failed", 1)):
        with service.ending(**_decided(verdict)):
            result = gate()
        assert result.exit_code == code
        assert "summary cannot be written" in result.stderr


def test_ctrl_c_before_there_is_a_run_is_no_verdict_either(prescore, checkpoint, monkeypatch):
    """Python's own ending by an exception would be 1, which is a gate that failed."""
    monkeypatch.setattr(bodies, "read_exactly", lambda *_: signal.raise_signal(signal.SIGINT))
    result = prescore("gate", checkpoint, "--dataset", "shapes/test", "--gate", GATE)
    assert result.exit_code == 130


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["undecided", "passed"], {"pass": 0, "fail": 1, "undecided": 3}),
        (["undecided", "failed"], {"pass": 1, "fail": 1, "undecided": 1}),
        (["undecided", "not_comparable"], {"pass": 3, "fail": 1, "undecided": 3}),
    ],
)
@pytest.mark.parametrize("counted", ["pass", "fail", "undecided"])
def test_an_undecided_gate_counts_as_it_is_told(service, gate, verdicts, code, counted):
    end = _decided("undecided")
    end["gates"] = [{**end["gates"][0], "verdict": verdict} for verdict in verdicts]
    with service.ending(**end):
        assert gate("--undecided", counted).exit_code == code[counted]
    if "failed" not in verdicts:
        with service.ending("ev_2", **{**end, "status": "failed"}):
            assert gate("--undecided", counted).exit_code == 3


# What it shows and asks


def test_the_verdict_is_told_first_and_last(service, gate):
    tasks = [task("bleu"), task("cider_d", "unavailable")]
    end = _decided("failed", "cider_d 0.41 < 0.45", tasks=tasks)
    with service.ending(**end):
        result = gate()
    assert result.exit_code == 1
    *first, scores, _, gates, heading, row, detail, last = result.stdout.splitlines()
    assert (scores, gates) == ("scores", "gates")
    assert first == [
        "ev_1  succeeded  shapes@v1/test",
        "verdict  failed",
        "tasks",
        "  cider_d  unavailable  1/1  0.5 s",
    ]
    assert row == f"  {GATE}  cider_d  0.4100  0.4000    +0.01000    failed"
    columns = ("metric", "value", "baseline", "difference", "verdict")
    shown = ("cider_d  ", "0.4100", "0.4000", "+0.01", "failed")
    assert [*map(heading.index, columns)] == [*map(row.rindex, shown)]
    assert detail == "failed: cider_d >= baseline - 0.01: cider_d 0.41 < 0.45"
    assert last == "failed: 0 of 1 gate passed"
    news = result.stderr.splitlines()
    assert (news[0], news[-1]) == ("submitted ev_1", "ev_1  succeeded")
    assert news[1] == f"{service.url}/ui/evaluations/ev_1"
    assert "0.41" not in result.stderr


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_images_that_the_service_does_not_tell_break_no_report(service, gate, tmp_path, status):
    end = _decided("failed")
    end["gates"][0]["scores"] = {"cider_d": MEASURED | {"evaluation": "ev_0"}}
    service.fault("GET", "/drops", status=status, body={"title": "Refused"}, times=10**6)
    with service.ending(**end):
        result = gate("--junit", tmp_path / "a.xml", "--patience", 0)
    assert result.exit_code == 1
    assert len(service.seen("GET", "/drops")) >= 1
    assert "Refused" not in result.output
    assert "fell most" not in (tmp_path / "a.xml").read_text()
    validate((tmp_path / "a.xml").read_bytes())


@in_github
def test_reports_are_written_where_they_are_asked_for_and_json_stays_alone_on_stdout(
    service, gate, tmp_path
):
    files = {name: tmp_path / name for name in ("junit", "json-out", "csv")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    with service.ending(**_decided("failed")):
        result = gate(*options, "--json")
    assert "\n::error title=prescore gate::" in result.stderr
    answer = json.loads(result.stdout)
    assert answer == json.loads(files["json-out"].read_text())
    assert answer["gates"][0]["scores"]["cider_d"]["difference"] == 0.01
    validate(files["junit"].read_bytes())
    with files["csv"].open(newline="", encoding="utf-8") as stream:
        assert [row["verdict"] for row in csv.DictReader(stream)] == ["failed"]


# What is one run


@in_github
def test_in_ci_branch_and_commit_become_labels_unless_they_are_given(service, gate):
    gate("--timeout", 0)
    gate("--timeout", 0, "--label", "branch=mine")
    labels = [request["labels"] for request in service.sent]
    assert labels == [
        {"branch": "main", "commit": "abc123"},
        {"branch": "mine", "commit": "abc123"},
    ]


@in_github
def test_a_job_that_runs_twice_shares_one_run(service, gate, monkeypatch):
    assert "submitted ev_1" in gate("--timeout", 0).stderr.splitlines()
    with service.ending(**_decided("passed")):
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
@in_github
def test_a_job_that_is_tried_again_gets_a_new_run_where_the_last_decided_nothing(
    service, gate, end
):
    with service.ending(**end):
        assert gate().exit_code == 3
    with service.ending("ev_2", **_decided("passed")):
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
