"""What a GitHub workflow shows: a summary of the step, its outputs, and annotations."""

import re
from collections.abc import Iterator

from prescore.cli import text
from prescore.cli.outcomes import Outcome
from prescore.plain_text import quoted

MARKS = {"passed": "\N{WHITE HEAVY CHECK MARK}", "failed": "\N{CROSS MARK}"}
OPEN = "\N{WARNING SIGN}"
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
TITLE = "prescore gate"


def summary(outcome: Outcome) -> str:
    """The outcome in GitHub's Markdown."""
    heading, *rows = text.gate_table(outcome.gates)
    verdict = text.verdict(outcome.verdict, outcome.gates)
    lines = [f"### {MARKS.get(verdict, OPEN)} {TITLE}: {_words(verdict)}", ""]
    if outcome.evaluation is not None:
        link = f"[{_words(outcome.evaluation.id)}](<{quoted(outcome.url)}>)"
        facts = (str(outcome.evaluation.dataset), outcome.evaluation.status)
        lines += [" · ".join([link, *map(_words, facts)]), ""]
    lines += [_row(heading), _row(["---"] * len(heading), markdown=True), *map(_row, rows), ""]
    lines += [f"- {_words(why)}" for why in _reasons(outcome)]
    return "\n".join(lines) + "\n\n"


def outputs(outcome: Outcome) -> str:
    identity = outcome.evaluation.id if outcome.evaluation is not None else ""
    return f"verdict={quoted(outcome.verdict)}\nevaluation={quoted(identity)}\n"


def annotations(outcome: Outcome) -> Iterator[str]:
    """Annotations for the run's error, and for each gate but those that passed a comparison; each
    ends with the page's URL.
    """
    for level, message in _annotated(outcome):
        yield _command(level, "\n".join(filter(None, (message, outcome.url))))


def _annotated(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for gate in outcome.gates:
        if gate.verdict == "failed":
            yield "error", f"{gate.gate}: {gate.detail or 'failed'}"
        elif (gate.verdict != "passed" or gate.passed_unheld) and gate.detail:
            verdict = text.verdict(gate.verdict or "undecided", [gate])
            yield "warning", f"{gate.gate}: {verdict}: {gate.detail}"
    for line in text.failed_baselines(outcome.gates):
        yield "warning", line.removeprefix("warning: ")
    if outcome.problem:
        yield "error", outcome.problem


def _reasons(outcome: Outcome) -> Iterator[str]:
    yield from text.gate_details(outcome.gates)
    yield from text.failed_baselines(outcome.gates)
    if outcome.problem:
        yield outcome.problem


def _row(cells: list[str] | tuple[str, ...], *, markdown: bool = False) -> str:
    return f"| {' | '.join(cells if markdown else map(_words, cells))} |"


def _words(said: str) -> str:
    """One line with every punctuation mark escaped: text of others cannot become Markdown."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(map(quoted, said.split("\n"))))


def _command(level: str, message: str) -> str:
    """A workflow command for GitHub's runner; `%` and line ends are escaped."""
    said = "%0A".join(map(quoted, message.replace("%", "%25").split("\n")))
    return f"::{level} title={TITLE}::{said}"
