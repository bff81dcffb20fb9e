"""The outcome of `prescore gate`: a verdict, none, or an error before there was a run."""

from dataclasses import dataclass
from typing import Literal, Self

from prescore import exit_codes
from prescore.cli import request_errors
from prescore.errors import PrescoreClientError
from prescore.models import CaptionDrops, Evaluation, Gate
from prescore.plain_text import quoted

DECISIVE = frozenset({"passed", "failed"})
CountedAs = Literal["pass", "fail", "undecided"]
_COUNTED = {"pass": "passed", "fail": "failed", "undecided": "undecided"}


@dataclass(frozen=True)
class GateOutcome:
    code: int
    gates: tuple[Gate, ...]
    problem: str = ""  # why there is no verdict, if no gate has the reason; its lines are plain
    evaluation: Evaluation | None = None
    drops: CaptionDrops | None = None  # against the baseline, where the service says them

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        undecided: CountedAs = "undecided",
        drops: CaptionDrops | None = None,
    ) -> Self:
        """Build the outcome of an evaluation; an undecided gate counts as it is told."""
        code = _choose_code(evaluation, undecided)
        return cls(code, tuple(evaluation.gates), _explain(evaluation), evaluation, drops)

    @classmethod
    def without(cls, texts: list[str], error: PrescoreClientError) -> Self:
        """Build the outcome of gates that were not evaluated because of an error."""
        gates = tuple(Gate.model_validate({"gate": text}) for text in texts)
        return cls(exit_codes.choose_code(error), gates, request_errors.format_error(error))

    @property
    def url(self) -> str:
        """The URL at which the page shows the evaluation; empty where there is none."""
        return self.evaluation.url if self.evaluation is not None else ""

    @property
    def verdict(self) -> str:
        verdict = self.evaluation.verdict if self.evaluation is not None else None
        return verdict or "undecided"


def _choose_code(evaluation: Evaluation, undecided: CountedAs) -> int:
    """Choose the exit code; a failed gate counts even if the run itself failed."""
    counted = {"undecided": _COUNTED[undecided]} if evaluation.status == "succeeded" else {}
    verdicts = {counted.get(gate.verdict or "", gate.verdict) for gate in evaluation.gates}
    if "failed" in verdicts:
        return exit_codes.NO
    if evaluation.status == "succeeded" and verdicts == {"passed"}:
        return exit_codes.DONE
    return exit_codes.FAILED


def _explain(evaluation: Evaluation) -> str:
    if evaluation.status == "succeeded":
        return "" if evaluation.gates else f"{evaluation.id} came back without gates"
    state = f"{evaluation.id} {'is' if not evaluation.ended else 'ended'} {evaluation.status}"
    error = evaluation.error
    return quoted(f"{state}: {error.detail or error.code}" if error is not None else state)
