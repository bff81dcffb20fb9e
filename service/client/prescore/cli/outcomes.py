"""The outcome of `prescore gate`: a verdict, none, or an error before there was a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from prescore import exit_codes
from prescore.cli import telling
from prescore.errors import PrescoreClientError
from prescore.models import Evaluation, Gate
from prescore.plain_text import quoted

DECISIVE = frozenset({"passed", "failed"})


@dataclass(frozen=True)
class Outcome:
    code: int
    gates: tuple[Gate, ...]
    problem: str = ""  # why there is no verdict, if no gate has the reason; its lines are plain
    evaluation: Evaluation | None = None

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        gates = tuple(evaluation.gates)
        return cls(_code(evaluation), gates, _problem(evaluation), evaluation)

    @classmethod
    def without(cls, asked: list[str], error: PrescoreClientError) -> Self:
        gates = tuple(Gate.model_validate({"gate": text}) for text in asked)
        return cls(exit_codes.of(error), gates, telling.told(error))

    @property
    def url(self) -> str:
        """Where the page shows the evaluation; empty where there is none."""
        return self.evaluation.url if self.evaluation is not None else ""

    @property
    def verdict(self) -> str:
        found = self.evaluation.verdict if self.evaluation is not None else None
        return found or "undecided"


def is_decided(evaluation: Evaluation) -> bool:
    return evaluation.verdict in DECISIVE


def _agreed(gates: Iterable[Gate]) -> str | None:
    """The verdict of all gates together, if it is decisive."""
    verdicts = {gate.verdict for gate in gates}
    if "failed" in verdicts:
        return "failed"
    return "passed" if verdicts == {"passed"} else None


def _code(evaluation: Evaluation) -> int:
    """The exit code; a failed gate counts even if the run itself failed."""
    verdict = _agreed(evaluation.gates)
    if verdict == "failed":
        return exit_codes.NO
    if evaluation.status == "succeeded" and verdict == "passed":
        return exit_codes.DONE
    return exit_codes.FAILED


def _problem(evaluation: Evaluation) -> str:
    if evaluation.status == "succeeded":
        return "" if evaluation.gates else f"{evaluation.id} came back without gates"
    said = f"{evaluation.id} {'is' if not evaluation.ended else 'ended'} {evaluation.status}"
    error = evaluation.error
    return quoted(f"{said}: {error.detail or error.code}" if error is not None else said)
