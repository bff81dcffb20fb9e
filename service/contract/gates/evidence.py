"""Evidence for gates: scores, baselines and comparisons, as far as they are known."""

from collections.abc import Mapping
from dataclasses import dataclass

from prescore.models.evaluations import Verdict
from service.contract.metrics import catalogue, signatures

Decision = tuple[Verdict | None, str | None]  # the verdict and its reason
OPEN: Decision = (None, None)


@dataclass(frozen=True)
class ScoreBounds:
    """The bounds of a score on the whole split; `low` equals `high` once it is computed, and
    `interval` is for other images like these.
    """

    low: float
    high: float
    signature: str
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class BaselineScore:
    """A metric's score in the baseline's evaluation. `scored_on`: the version and split of its
    dataset; `label`: by which it was found.
    """

    evaluation: str
    value: float
    signature: str
    scored_on: str | None = None
    label: str | None = None
    failed: bool = False  # its own gates

    def __str__(self) -> str:
        on = "" if self.scored_on is None else f" of {self.scored_on}"
        label = "" if self.label is None else f", {self.label}"
        failed = ", which failed its own gates" if self.failed else ""
        return f"{self.evaluation}{on}{label}{failed}"


@dataclass(frozen=True)
class BaselineDifference:
    """A comparison with the baseline; `difference` is this score - the baseline's."""

    difference: float
    p: float | None
    minimum_detectable: float | None
    interval: tuple[float, float] | None = None
    images: int | None = None


@dataclass(frozen=True)
class ExpectedDifference:
    """A difference from the baseline, expected from some of the images: [low, high] holds the
    difference of all images, valid at every look and for all such metrics together; `error` is the
    most that its standard error will be.
    """

    low: float
    high: float
    error: float
    images: int
    of: int


@dataclass(frozen=True)
class GateEvidence:
    """Evidence so far, by metric as gates name it. A text in `baselines` and `compared` says
    why there will never be a value; so does `lost` for scores. `distrusted` says why gates may
    not use a metric.
    """

    measured: Mapping[str, ScoreBounds]
    lost: Mapping[str, str]
    baselines: Mapping[str, BaselineScore | str]
    compared: Mapping[str, BaselineDifference | ExpectedDifference | str]
    distrusted: Mapping[str, str]


def find_block(
    metric: str, baseline: BaselineScore | str | None, evidence: GateEvidence
) -> Decision | None:
    """Find the verdict and reason if a metric cannot decide a gate, whatever its value."""
    if metric in evidence.distrusted:
        return "undecided", evidence.distrusted[metric]
    if isinstance(baseline, str):
        return "not_comparable", baseline
    measured = evidence.measured.get(metric)
    if measured is None and metric in evidence.lost:
        return "undecided", evidence.lost[metric]
    if baseline is None or measured is None:
        return None
    differs = signatures.describe_signature_difference(measured.signature, baseline.signature)
    if differs is None:
        return None
    sides = f"this evaluation's and the baseline's ({baseline})"
    return "not_comparable", f"{metric} was not computed alike: {differs} ({sides})"


def is_higher_better(metric: str) -> bool:
    return catalogue.find_metric(metric).higher_is_better is True
