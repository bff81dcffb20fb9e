"""JUnit XML, as Jenkins, GitLab and GitHub's actions read it: a test case for each gate."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from prescore import plain_text
from prescore.cli import text
from prescore.cli.outcomes import Outcome
from prescore.models import Gate

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def written(outcome: Outcome) -> bytes:
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _facts(outcome))
    properties = SubElement(suite, "properties")
    for name, value in _properties(outcome):
        SubElement(properties, "property", name=name, value=_clean(value))
    for gate in outcome.gates:
        _case(suite, gate, outcome)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _facts(outcome: Outcome) -> dict[str, str]:
    kinds = [_kind(gate) for gate in outcome.gates]
    facts = {
        "name": "prescore gate",
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


def _properties(outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield "verdict", outcome.verdict
    if outcome.evaluation is not None:
        yield "evaluation", outcome.evaluation.id
        yield "url", outcome.url
        yield "dataset", str(outcome.evaluation.dataset)
        yield "checkpoint", outcome.evaluation.checkpoint or ""
        for name, value in outcome.evaluation.labels.items():
            yield f"label.{_clean(name)}", value


def _case(suite: Element, gate: Gate, outcome: Outcome) -> None:
    case = SubElement(
        suite, "testcase", name=_clean(gate.gate), classname="prescore.gate", time="0"
    )
    kind = _kind(gate)
    if kind:
        verdict = gate.verdict or "undecided"
        why = _lines(gate.detail or outcome.problem)
        if kind == "skipped":
            why = f"{text.verdict(verdict, [gate])}: {why}"
        first = why.partition("\n")[0]
        named = {} if kind == "skipped" else {"type": _clean(verdict)}
        told = "\n".join(filter(None, (why, outcome.url)))
        SubElement(case, kind, {"message": first, **named}).text = told
    if gate.scores:
        SubElement(case, "system-out").text = _lines(
            "\n".join([*text.aligned(text.gate_table([gate])), *text.failed_baselines([gate])])
        )


def _kind(gate: Gate) -> str:
    """JUnit's element: an undecided gate is an `error`, since it does not show a bad captioner; one
    that passed for want of a baseline is `skipped`.
    """
    if gate.passed_unheld:
        return "skipped"
    return {"passed": "", "failed": "failure"}.get(gate.verdict or "", "error")


def _lines(words: str) -> str:
    return "\n".join(_clean(plain_text.line(line)) for line in words.split("\n"))


def _clean(words: str) -> str:
    """One line; JUnit's readers show it in logs and pages."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", plain_text.quoted(words))
