"""What a gate leaves for Jenkins, GitLab and GitHub, whatever words are in it."""

import csv
import re
from dataclasses import replace

import pytest

from client.junit_schema import validate
from prescore.cli import gate_reports, gate_tables, run_summaries, text
from prescore.cli.gate_outcomes import GateOutcome
from prescore.cli.gate_reports import GateReports, report_to_github
from prescore.errors import Unreachable
from prescore.models import CaptionDrops, Evaluation
from prescore.models.base import Origin

PAGE = "https://scores.example/ui/evaluations/ev_1"
LINK = f"[ev\\_1](<{PAGE}>)"
GATE = "cider_d >= baseline - 0.01"
LONG = "not_worse(cider_d, meteor, rouge_l, bleu_1, bleu_4, 2 %)"
DROP = "no_significant_drop(cider_d, meteor)"
EVIL = "[c](d:e)a|b`<i>&*_\x1b[2J\r\n::add-mask::x\u2028::error::y\x00\ud800]]>%"
MEASURED = {"value": 0.41, "interval": [0.38, 0.44], "baseline": 0.4, "difference": 0.01}


def _gate(text, verdict, detail="", **scores):
    return {"gate": text, "verdict": verdict, "detail": detail, "scores": scores}


def _outcome(*gates, **fields):
    return GateOutcome.of(
        Evaluation.model_validate(
            {
                "id": "ev_1",
                "status": "succeeded",
                "dataset": {"name": "shapes", "version": "v1", "split": "test"},
                "gates": gates,
                "labels": {"branch": "main"},
                "created_at": "2026-01-02T03:04:05Z",
                "finished_at": "2026-01-02T03:04:07.500Z",
                **fields,
            },
            context=Origin("http://127.0.0.1:8000", pages="https://scores.example"),
        )
    )


THREE = _outcome(
    _gate("cider_d >= baseline", "passed", "cider_d 0.41 >= 0.4", cider_d=MEASURED),
    _gate(DROP, "failed", "meteor: -0.02", cider_d=MEASURED, meteor={"value": 0.2}),
    _gate("spice > 0", "undecided", "spice is unavailable:\nno CoreNLP"),
    verdict="failed",
)
NOWHERE = GateOutcome.without(["cider_d > 0"], Unreachable("http://127.0.0.1:1", "refused"))


@pytest.mark.parametrize(
    ("status", "verdicts", "code"),
    [
        ("succeeded", ["passed"], 0),
        ("succeeded", ["failed"], 1),
        ("succeeded", ["undecided"], 3),
        ("succeeded", ["not_comparable"], 3),
        ("succeeded", ["a word of next year"], 3),
        ("succeeded", ["passed", "failed"], 1),
        ("succeeded", [None], 3),
        ("succeeded", [], 3),
        ("failed", ["failed"], 1),
        ("failed", ["passed"], 3),
        ("canceled", ["passed"], 3),
    ],
)
def test_a_command_exits_by_the_verdicts_of_its_gates(status, verdicts, code):
    gates = [_gate("cider_d > 0", verdict) for verdict in verdicts]
    assert _outcome(*gates, status=status).code == code


def test_junit_has_a_test_case_for_each_gate():
    root = validate(gate_reports.format_junit(THREE))
    (suite,) = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "time")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1", "time": "2.500"}
    assert suite.get("timestamp") == "2026-01-02T03:04:05"
    named = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert named["verdict"] == "failed"
    assert named["evaluation"] == "ev_1"
    assert named["label.branch"] == "main"
    assert named["url"] == PAGE
    passed, failed, undecided = suite.iter("testcase")
    assert passed.get("name") == "cider_d >= baseline"
    assert [child.tag for child in passed] == ["system-out"]
    assert failed.find("failure").get("message") == "meteor: -0.02"
    assert undecided.find("error").get("type") == "undecided"
    assert undecided.find("error").get("message") == "spice is unavailable:"
    assert undecided.find("error").text == f"spice is unavailable:\nno CoreNLP\n{PAGE}"


def test_a_gate_that_passed_for_want_of_a_baseline_says_so_everywhere(tmp_path):
    detail = "no baseline yet; counted as passed"
    first = _gate("cider_d >= baseline", "passed", detail, cider_d=MEASURED)
    outcome = _outcome(first | {"no_baseline": True}, verdict="passed")
    (suite,) = validate(gate_reports.format_junit(outcome))
    assert suite.get("skipped") == "1"
    skipped = next(suite.iter("skipped"))
    assert skipped.get("message") == f"passed (no baseline): {detail}"
    GateReports(None, None, tmp_path / "gates.csv").write(outcome)
    with (tmp_path / "gates.csv").open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["verdict"], row["no_baseline"]) == ("passed", "True")
    lines = gate_reports.format_summary(outcome).splitlines()
    assert lines[0] == "### \N{WARNING SIGN} prescore gate: passed \\(no baseline\\)"
    assert any(line.endswith("| passed \\(no baseline\\) |") for line in lines)
    assert list(gate_reports.list_annotations(outcome)) == [
        (
            "::warning title=prescore gate::cider_d >= baseline: passed (no baseline): "
            f"{detail}%0A{PAGE}"
        )
    ]
    assert outcome.code == 0


@pytest.mark.parametrize("verdict", ["passed", "failed"])
def test_a_baseline_that_failed_its_own_gates_is_told_in_every_report(tmp_path, verdict):
    measured = MEASURED | {"evaluation": "ev_before"}
    gates = [
        _gate(text, verdict, "x", cider_d=measured) | {"baseline_failed": True}
        for text in ("cider_d >= baseline", "cider_d >= baseline - 1")
    ]
    outcome = _outcome(*gates, verdict=verdict)
    line = "warning: the baseline ev_before failed its own gates"
    for lines in (
        run_summaries.format_verdict_summary(outcome.evaluation),
        run_summaries.format_summary(outcome.evaluation),
    ):
        assert lines.count(line) == 1
    cases = [*validate(gate_reports.format_junit(outcome)).iter("testcase")]
    assert all(case.find("system-out").text.endswith(line) for case in cases)
    assert gate_reports.format_summary(outcome).count("failed its own gates") == 1
    told = f"::warning title=prescore gate::{line.removeprefix('warning: ')}%0A{PAGE}"
    assert [*gate_reports.list_annotations(outcome)][-1] == told
    GateReports(None, None, tmp_path / "gates.csv").write(outcome)
    with (tmp_path / "gates.csv").open(newline="") as stream:
        assert [row["baseline_failed"] for row in csv.DictReader(stream)] == ["True", "True"]


@pytest.mark.parametrize("verdict", ["passed", "failed", "undecided", "not_comparable", None])
def test_any_words_make_valid_junit(verdict):
    outcome = _outcome(
        _gate(EVIL, verdict, EVIL, **{EVIL: {"value": 1}}), verdict=verdict, labels={EVIL: EVIL}
    )
    case = next(validate(gate_reports.format_junit(outcome)).iter("testcase"))
    assert r"a|b`<i>&*_\x1b[2J\r\n::add-mask" in case.get("name")


def test_a_summary_is_a_table_of_markdown():
    summary = gate_reports.format_summary(THREE)
    lines = summary.splitlines()
    assert lines[0] == "### \N{CROSS MARK} prescore gate: failed"
    assert f"{LINK} · shapes\\@v1\\/test · succeeded" in lines
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 4  # a heading, a rule, and a row for each metric of each gate
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {7}
    assert r"| cider\_d | 0\.4100 | 0\.4000 | \+0\.01000 | passed |" in summary
    assert "- undecided\\: spice \\> 0\\: spice is unavailable\\: no CoreNLP" in lines


def test_any_words_stay_words_in_a_summary():
    text = gate_reports.format_summary(_outcome(_gate(EVIL, "failed", EVIL), verdict="failed"))
    assert not re.search(r"(?<!\\)[`<>&*]", text.replace("### ", "").replace(LINK, ""))
    assert not re.search(r"(?<!\\)\]\(", text.replace(LINK, ""))
    assert all(line == "" or line[0] in "#|-[" for line in text.splitlines())
    assert all(c.isprintable() or c == "\n" for c in text)


def test_outputs_are_one_line_each():
    text = gate_reports.format_outputs(_outcome(verdict="failed\nverdict=passed"))
    assert text == "verdict=failed\\nverdict=passed\nevaluation=ev_1\n"
    assert gate_reports.format_outputs(NOWHERE) == "verdict=undecided\nevaluation=\n"


def test_annotations_tell_all_but_what_has_passed():
    assert list(gate_reports.list_annotations(THREE)) == [
        f"::error title=prescore gate::{DROP}: meteor: -0.02%0A{PAGE}",
        (
            "::warning title=prescore gate::spice > 0: undecided: spice is unavailable:"
            f"%0Ano CoreNLP%0A{PAGE}"
        ),
    ]
    (line,) = gate_reports.list_annotations(NOWHERE)
    assert line.startswith("::error title=prescore gate::no answer from http://127.0.0.1:1")


def test_an_annotation_stays_one_line_and_one_command():
    (line,) = gate_reports.list_annotations(_outcome(_gate(EVIL, "failed", EVIL), verdict="failed"))
    assert len(line.splitlines()) == 1
    assert r"\r%0A::add-mask" in line
    assert line.endswith(f"%25%0A{PAGE}")


def test_github_is_told_in_github_alone(tmp_path, capsys):
    places = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    report_to_github(THREE, places)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "GITHUB_OUTPUT").write_text("others=1\n")
    report_to_github(THREE, {"GITHUB_ACTIONS": "true", **places})
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == (
        "others=1\nverdict=failed\nevaluation=ev_1\n"
    )
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text("utf-8") == gate_reports.format_summary(
        THREE
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 2
    report_to_github(THREE, {"GITHUB_ACTIONS": "true"})


def test_csv_has_a_line_for_each_metric_of_each_gate(tmp_path):
    GateReports(None, None, tmp_path / "gates.csv").write(THREE)
    with (tmp_path / "gates.csv").open(newline="", encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    assert [(row["gate"], row["metric"]) for row in found] == [
        ("cider_d >= baseline", "cider_d"),
        (DROP, "cider_d"),
        (DROP, "meteor"),
        ("spice > 0", ""),
    ]
    assert found[0] == {
        "gate": "cider_d >= baseline",
        "metric": "cider_d",
        "value": "0.41",
        "low": "0.38",
        "high": "0.44",
        "baseline": "0.4",
        "difference": "0.01",
        "difference_low": "",
        "difference_high": "",
        "margin": "",
        "p": "",
        "minimum_detectable": "",
        "verdict": "passed",
        "no_baseline": "False",
        "baseline_failed": "False",
    }


DIFFERENCE = {"difference_interval": [-0.0312, 0.0112], "margin": 0.008}


@pytest.mark.parametrize(
    ("gate", "metric", "shown", "columns"),
    [
        ("better(cider_d)", "cider_d", "better(cider_d)", {"baseline", "interval", "margin"}),
        (GATE, "cider_d", GATE, {"interval", "margin"}),
        (LONG, "cider_d", f"{LONG[:29]}…", {"interval", "margin"}),
        (LONG, "corpus_perplexity", f"{LONG[:27]}…", {"interval"}),
        (LONG, "m" * 80, f"{LONG[:23]}…", set()),
    ],
)
def test_a_table_that_is_too_wide_has_first_what_matters_most(gate, metric, shown, columns):
    outcome = _outcome(_gate(gate, "undecided", **{metric: MEASURED | DIFFERENCE}))
    heading, row = gate_tables.fit_table(gate_tables.build_table(outcome.gates))
    always = {"gate", "metric", "value", "difference", "verdict"}
    assert set(heading) == always | columns
    assert (row[0], row[-1]) == (shown, "undecided")
    assert not columns or len(text.align_rows([heading, row])[1]) <= 98
    told = dict(zip(heading, row, strict=True))
    assert told.get("interval", "-0.0312 to +0.0112") == "-0.0312 to +0.0112"
    assert told.get("margin", "0.008") == "0.008"


DROPS = CaptionDrops.model_validate(
    {
        "gate": DROP,
        "metric": "meteor",
        "baseline": "ev_0",
        "images": [
            {
                "image": f"{at}{EVIL}",
                "a": f"now {EVIL}" + "x" * 200,
                "b": f"before\n{EVIL}",
                "scores": {"meteor": {"a": 0.1, "b": 0.25, "difference": -0.15}},
            }
            for at in range(5)
        ],
    }
)


def test_captions_that_fell_are_plain_in_every_report_three_at_most():
    outcome = replace(THREE, drops=DROPS)
    summary = gate_reports.format_summary(outcome)
    told = summary[summary.index("#### ") :]
    assert told.startswith("#### images that fell most by meteor against ev\\_0\n")
    rows = [line for line in told.splitlines() if line.startswith("|")][2:]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    linked = re.sub(rf"\(<{PAGE}/images/[\w%.~-]+\?with=ev_0>\)", "", told)
    assert not re.search(r"(?<!\\)[`<>&*]|(?<!\\)\]\(", linked.replace("before -> now", ""))
    failure = next(validate(gate_reports.format_junit(outcome)).iter("failure")).text
    (annotation, _) = gate_reports.list_annotations(outcome)
    lines = run_summaries.format_verdict_summary(outcome.evaluation, DROPS)
    for written in (failure.split("\n"), annotation.split("%0A"), lines):
        assert sum("0.2500 -> 0.1000" in line for line in written) == 3
        (now, *_) = [line for line in written if line.startswith("    now ")]
        assert now.removeprefix("    now     ").startswith(r"now [c](d:e)a|b`<i>&*_\x1b[2J\r\n")
        assert now.endswith("x…")
    assert all(c.isprintable() or c == "\n" for c in summary + annotation)
    assert all("\n" not in line for line in lines)


@pytest.mark.parametrize("drops", [None, CaptionDrops.model_validate({})])
def test_without_images_that_fell_reports_are_as_before(drops):
    outcome = replace(THREE, drops=drops)
    for format_report in (gate_reports.format_summary, gate_reports.format_junit):
        assert format_report(outcome) == format_report(THREE)
    assert [*gate_reports.list_annotations(outcome)] == [*gate_reports.list_annotations(THREE)]


def test_any_words_are_written_to_every_file(tmp_path):
    nothing_answered = GateOutcome.without([EVIL], Unreachable(EVIL, EVIL))
    places = [tmp_path / name for name in ("a.xml", "a.json", "a.csv")]
    GateReports(*places).write(nothing_answered)
    assert all(path.stat().st_size for path in places)


def test_a_fall_is_told_in_every_report():
    beside = {"evaluation": "ev_0", "labels": {"run": "merge-64"}}
    fall = {"metric": "cider_d", "kind": "run", "step": 5, "value": 3.34, "expected": 4.1}
    fall |= {"difference": -1.03, "interval": [-1.31, -0.77], "beside": beside}
    outcome = _outcome(_gate("cider_d > 0", "passed", "x"), falls=[fall], verdict="passed")
    line = "fall: cider_d 3.34 at step 5 is 1.03 [0.77, 1.31] below merge-64 at the same step"
    assert line in run_summaries.format_summary(outcome.evaluation)
    assert line in run_summaries.format_verdict_summary(outcome.evaluation)
    (annotation,) = gate_reports.list_annotations(outcome)
    assert annotation == f"::warning title=prescore gate::{line}%0A{PAGE}"
    assert "fall\\: cider\\_d 3\\.34 at step 5" in gate_reports.format_summary(outcome)
    evil = {**fall, "beside": {"evaluation": "ev_0", "labels": {"run": EVIL}}}
    (shown,) = run_summaries.list_falls(_outcome(falls=[evil]).evaluation)
    assert shown.isprintable()
