"""Reports of `prescore gate` for programs: JUnit XML, JSON, CSV, and a GitHub workflow's summary,
outputs and annotations.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import typer

from prescore import plain_text
from prescore.cli import caption_drops, console, gate_tables, run_summaries, text
from prescore.cli.gate_outcomes import GateOutcome
from prescore.models import Gate
from prescore.plain_text import quoted

TITLE = "prescore gate"
_MARKS = {"passed": "\N{WHITE HEAVY CHECK MARK}", "failed": "\N{CROSS MARK}"}
_OPEN = "\N{WARNING SIGN}"
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class GateReports:
    """The files that a command writes."""

    junit: Path | None
    json: Path | None
    csv: Path | None

    def write(self, outcome: GateOutcome) -> None:
        if self.junit is not None:
            console.write_file(self.junit, format_junit(outcome))
        if self.json is not None:
            console.write_file(self.json, f"{_format_json(outcome)}\n".encode())
        rows = gate_tables.list_rows(outcome.gates)
        console.write_csv(self.csv, gate_tables.GateRow._fields, rows)


def _format_json(outcome: GateOutcome) -> str:
    if outcome.evaluation is not None:
        return outcome.evaluation.model_dump_json()
    gates = [gate.model_dump(mode="json") for gate in outcome.gates]
    error = {"detail": outcome.problem}
    return json.dumps({"id": None, "verdict": None, "gates": gates, "error": error})


# GitHub


def report_to_github(outcome: GateOutcome, environment: Mapping[str, str]) -> None:
    """Write a GitHub workflow's summary, outputs and annotations. Annotations go to stderr, which
    the runner reads too, since stdout may be JSON.
    """
    if not environment.get("GITHUB_ACTIONS"):
        return
    for line in list_annotations(outcome):
        typer.echo(line, err=True)  # not `print_note`, since it is a command
    for name, format_ in (("STEP_SUMMARY", format_summary), ("OUTPUT", format_outputs)):
        if path := environment.get(f"GITHUB_{name}"):
            console.write_file(Path(path), format_(outcome).encode("utf-8"), append=True)


def format_summary(outcome: GateOutcome) -> str:
    """Format the outcome in GitHub's Markdown."""
    heading, *rows = gate_tables.build_table(outcome.gates)
    verdict = gate_tables.format_verdict(outcome.verdict, outcome.gates)
    lines = [f"### {_MARKS.get(verdict, _OPEN)} {TITLE}: {_escape_markdown(verdict)}", ""]
    if outcome.evaluation is not None:
        link = f"[{_escape_markdown(outcome.evaluation.id)}](<{quoted(outcome.url)}>)"
        facts = (str(outcome.evaluation.dataset), outcome.evaluation.status)
        lines += [" · ".join([link, *map(_escape_markdown, facts)]), ""]
    table = [_join_cells(map(_escape_markdown, cells)) for cells in (heading, *rows)]
    lines += [table[0], _join_cells(["---"] * len(heading)), *table[1:], ""]
    reasons = [
        *gate_tables.list_details(outcome.gates),
        *gate_tables.list_failed_baselines(outcome.gates),
    ]
    reasons += [*_list_falls(outcome), *([outcome.problem] if outcome.problem else [])]
    lines += [f"- {_escape_markdown(reason)}" for reason in reasons]
    return "\n".join([*lines, *_format_drops(outcome)]) + "\n\n"


def _format_drops(outcome: GateOutcome) -> Iterator[str]:
    """Format the images that fell most, each with a link, as a table of Markdown."""
    if outcome.drops is None or not outcome.drops.images:
        return
    yield from ("", f"#### {_escape_markdown(caption_drops.format_heading(outcome.drops))}", "")
    heading = ("image", "before -> now", "caption before", "caption now")
    yield from (_join_cells(heading), _join_cells(["---"] * len(heading)))
    for row in caption_drops.list_rows(outcome.drops, outcome.url):
        image, *cells = map(_escape_markdown, (row.image, row.scores, row.before, row.now))
        yield _join_cells([f"[{image}](<{quoted(row.url)}>)", *cells])


def format_outputs(outcome: GateOutcome) -> str:
    identity = outcome.evaluation.id if outcome.evaluation is not None else ""
    return f"verdict={quoted(outcome.verdict)}\nevaluation={quoted(identity)}\n"


def list_annotations(outcome: GateOutcome) -> Iterator[str]:
    """Give annotations for the run's error, and for each gate but those that passed a comparison;
    each ends with the page's URL.
    """
    for level, message in _list_messages(outcome):
        yield _format_command(level, "\n".join(filter(None, (message, outcome.url))))


def _list_messages(outcome: GateOutcome) -> Iterator[tuple[str, str]]:
    for gate in outcome.gates:
        drops = _list_drops(gate, outcome)
        if gate.verdict == "failed":
            yield "error", "\n".join([f"{gate.gate}: {gate.detail or 'failed'}", *drops])
        elif (gate.verdict != "passed" or gate.passed_unheld) and gate.detail:
            verdict = gate_tables.format_verdict(gate.verdict or "undecided", [gate])
            yield "warning", "\n".join([f"{gate.gate}: {verdict}: {gate.detail}", *drops])
    for line in gate_tables.list_failed_baselines(outcome.gates):
        yield "warning", line.removeprefix("warning: ")
    for line in _list_falls(outcome):
        yield "warning", line
    if outcome.problem:
        yield "error", outcome.problem


def _list_drops(gate: Gate, outcome: GateOutcome) -> list[str]:
    """List the images that fell most as lines, of the gate for which they are shown."""
    if outcome.drops is None or gate.gate != outcome.drops.gate:
        return []
    return caption_drops.format_lines(outcome.drops, outcome.url)


def _list_falls(outcome: GateOutcome) -> list[str]:
    return run_summaries.list_falls(outcome.evaluation) if outcome.evaluation else []


def _join_cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_markdown(words: str) -> str:
    """Make one line with every punctuation mark escaped: text of others cannot become Markdown."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(map(quoted, words.split("\n"))))


def _format_command(level: str, message: str) -> str:
    """Format a workflow command for GitHub's runner; `%` and line ends are escaped."""
    escaped = "%0A".join(map(quoted, message.replace("%", "%25").split("\n")))
    return f"::{level} title={TITLE}::{escaped}"


# JUnit XML, as Jenkins, GitLab and GitHub's actions read it: a test case for each gate


def format_junit(outcome: GateOutcome) -> bytes:
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _count_cases(outcome))
    properties = SubElement(suite, "properties")
    for name, value in _list_properties(outcome):
        SubElement(properties, "property", name=name, value=_clean_xml(value))
    for gate in outcome.gates:
        _add_case(suite, gate, outcome)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _count_cases(outcome: GateOutcome) -> dict[str, str]:
    kinds = [_choose_element(gate) for gate in outcome.gates]
    facts = {
        "name": TITLE,
        "tests": str(len(kinds)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": "0",
    }
    evaluation = outcome.evaluation
    if evaluation is not None and evaluation.created_at is not None:
        facts["timestamp"] = evaluation.created_at.strftime("%Y-%m-%dT%H:%M:%S")
        if evaluation.finished_at is not None:
            seconds = (evaluation.finished_at - evaluation.created_at).total_seconds()
            facts["time"] = f"{seconds:.3f}"
    return facts


def _list_properties(outcome: GateOutcome) -> Iterator[tuple[str, str]]:
    yield "verdict", outcome.verdict
    if outcome.evaluation is not None:
        yield "evaluation", outcome.evaluation.id
        yield "url", outcome.url
        yield "dataset", str(outcome.evaluation.dataset)
        yield "checkpoint", outcome.evaluation.checkpoint or ""
        for name, value in outcome.evaluation.labels.items():
            yield f"label.{_clean_xml(name)}", value


def _add_case(suite: Element, gate: Gate, outcome: GateOutcome) -> None:
    case = SubElement(
        suite, "testcase", name=_clean_xml(gate.gate), classname="prescore.gate", time="0"
    )
    kind, drops = _choose_element(gate), _list_drops(gate, outcome)
    if kind:
        verdict = gate.verdict or "undecided"
        reason = _clean_lines(gate.detail or outcome.problem)
        if kind == "skipped":
            reason = f"{gate_tables.format_verdict(verdict, [gate])}: {reason}"
        named = {} if kind == "skipped" else {"type": _clean_xml(verdict)}
        element = SubElement(case, kind, {"message": reason.partition("\n")[0], **named})
        fallen = _clean_lines("\n".join(drops))
        element.text = "\n".join(filter(None, (reason, fallen, outcome.url)))
    if gate.scores:
        table = text.align_rows(gate_tables.build_table([gate]))
        lines = [*table, *gate_tables.list_failed_baselines([gate])]
        lines += [] if kind else drops
        SubElement(case, "system-out").text = _clean_lines("\n".join(lines))


def _choose_element(gate: Gate) -> str:
    """Choose JUnit's element: an undecided gate is an `error`, since it does not show a bad
    captioner; one that passed for want of a baseline is `skipped`.
    """
    if gate.passed_unheld:
        return "skipped"
    return {"passed": "", "failed": "failure"}.get(gate.verdict or "", "error")


def _clean_lines(words: str) -> str:
    return "\n".join(_clean_xml(plain_text.line(line)) for line in words.split("\n"))


def _clean_xml(words: str) -> str:
    """Make one line; JUnit's readers show it in logs and pages."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", plain_text.quoted(words))
