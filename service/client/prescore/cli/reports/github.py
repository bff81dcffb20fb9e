"""What a GitHub workflow shows: a summary of the step, its outputs, and annotations."""

import re
from collections.abc import Iterator

from prescore.cli import text
from prescore.cli.console import one_line, plain
from prescore.cli.outcomes import Outcome

MARKS = {"passed": "\N{WHITE HEAVY CHECK MARK}", "failed": "\N{CROSS MARK}"}
OPEN = "\N{WARNING SIGN}"
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
TITLE = "prescore gate"


def summary(outcome: Outcome) -> str:
    """In GitHub's Markdown."""
    heading, *rows = text.gates_told(outcome.gates)
    lines = [f"### {MARKS.get(outcome.verdict, OPEN)} {TITLE}: {_words(outcome.verdict)}", ""]
    if outcome.evaluation is not None:
        facts = (outcome.evaluation.id, str(outcome.evaluation.dataset), outcome.evaluation.status)
        lines += [" · ".join(map(_words, facts)), ""]
    lines += [_row(heading), _row(["---"] * len(heading), as_it_is=True), *map(_row, rows), ""]
    lines += [f"- {_words(why)}" for why in _reasons(outcome)]
    return "\n".join(lines) + "\n\n"


def outputs(outcome: Outcome) -> str:
    identity = outcome.evaluation.id if outcome.evaluation is not None else ""
    return f"verdict={plain(outcome.verdict)}\nevaluation={plain(identity)}\n"


def annotations(outcome: Outcome) -> Iterator[str]:
    """Of everything but a gate that has passed."""
    for gate in outcome.gates:
        if gate.verdict == "failed":
            yield _command("error", f"{gate.gate}: {gate.detail or 'failed'}")
        elif gate.verdict != "passed" and gate.detail:
            yield _command("warning", f"{gate.gate}: {gate.verdict or 'undecided'}: {gate.detail}")
    if outcome.problem:
        yield _command("error", outcome.problem)


def _reasons(outcome: Outcome) -> Iterator[str]:
    yield from text.gate_details(outcome.gates)
    if outcome.problem:
        yield outcome.problem


def _row(cells: list[str] | tuple[str, ...], *, as_it_is: bool = False) -> str:
    return f"| {' | '.join(cells if as_it_is else map(_words, cells))} |"


def _words(said: str) -> str:
    """Every mark escaped, which Markdown allows: what others wrote stays words on one line."""
    return _PUNCTUATION.sub(r"\\\1", one_line(said))


def _command(level: str, message: str) -> str:
    """A line that the runner reads; what it takes for an end or a code is escaped."""
    said = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title={TITLE}::{plain(said)}"
