"""Evaluations: scores, gates, captions and tokens."""

from typing import Any, ClassVar

from pydantic import Field, RootModel

from prescore.models.base import Answer, Brief
from prescore.models.runs import Oddity, Run

SCORES_SHOWN = 4  # in a short form


class Score(Brief):
    """`value` is a fraction as the toolkits return it (BLEU .33), None where it is not a number."""

    value: float | None
    family: str = ""
    higher_is_better: bool | None = None
    interval: tuple[float, float] | None = None
    signature: str | None = None

    def facts(self) -> tuple[object, ...]:
        low, high = self.interval or (None, None)
        return self.value, "" if self.interval is None else f"[{low:.4g}, {high:.4g}]"


class GateScore(Answer):
    """One metric of a gate: its value and its baseline; `difference` is value - baseline."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    evaluation: str | None = None  # the id of the baseline's evaluation
    difference: float | None = None
    p: float | None = None
    minimum_detectable: float | None = None


class Gate(Answer):
    gate: str
    verdict: str | None = None
    detail: str | None = None
    no_baseline: bool = False  # nothing has been scored yet that could be its baseline
    baseline_failed: bool = False  # its own gates
    scores: dict[str, GateScore] = Field(default_factory=dict)

    @property
    def passed_unheld(self) -> bool:
        """Whether it passed for want of a baseline, as `--if-no-baseline pass` counts it."""
        return self.no_baseline and self.verdict == "passed"


class Evaluation(Run):
    PLACE: ClassVar[str] = "/v1/evaluations"

    checkpoint: str | None = None
    columns: str | None = None
    scores: dict[str, Score] = Field(default_factory=dict)
    warnings: tuple[Oddity, ...] = ()
    gates: tuple[Gate, ...] = ()
    verdict: str | None = None
    forecast: Any = None
    estimate: Any = None
    health: Any = None
    labels: dict[str, str] = Field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the page shows it to people."""
        return f"{self._origin.pages or self._origin.service}/ui/evaluations/{self.id}"

    def below(self) -> tuple[str, ...]:
        return "pregen", "captions", "events"

    def facts(self) -> tuple[object, ...]:
        known = {name: one.value for name, one in self.scores.items() if one.value is not None}
        shown = [f"{name}={value:.4g}" for name, value in known.items()][:SCORES_SHOWN]
        return *super().facts(), self.verdict or "", *shown


class PregenScores(Answer):
    scores: dict[str, Score]


class Caption(Brief):
    image: str
    caption: str
    scores: dict[str, float | None] = Field(default_factory=dict)

    def facts(self) -> tuple[object, ...]:
        return self.image, self.caption


class CocoResults(RootModel[list[dict[str, Any]]]):
    pass


class TopWord(Answer):
    word: str
    logp: float | None = None


class Token(Answer):
    word: str
    logp: float | None = None  # None: its probability is 0
    rank: int | None = None
    top: str | tuple[str, ...] | None = None
    top_logp: float | tuple[float, ...] | None = None
    tops: tuple[TopWord, ...] = ()  # the likeliest words, `top` first: as many as were asked for
    entropy: float | None = None  # in nats; None: not asked for


class TokenizedCaption(Answer):
    text: str
    tokens: tuple[Token, ...] = ()


class Tokens(Answer):
    image: str
    captions: tuple[TokenizedCaption, ...] = ()


class Event(Answer):
    """A run's event: `work`, `scores` or `end`. Give `id` as `last_event_id` to resume after it."""

    id: str = ""
    name: str
    data: Any = None
