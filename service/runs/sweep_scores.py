"""Early and final scores of a sweep's runs and of past trainings, from the record."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.contract.metrics import catalogue
from service.contract.metrics.catalogue import MetricSpec
from service.contract.metrics.draws import ScoreDraws
from service.engine.service_parts import ServiceParts
from service.runs import sweep_trainings, training_scores
from service.runs.early_forecasts import EndedTraining
from service.runs.sweep_trainings import SweepTrainings
from service.runs.training_scores import MetricCurves
from service.stored.datasets import PinnedSplit

_MOST = 1000  # the latest labelled evaluations, of which ten metrics are read
_MOST_PAST = 100  # the latest past trainings, of which the best of ten metrics is chosen in 1 s
_PREDICTORS = (
    *(*catalogue.HEADLINE, catalogue.CORPUS, catalogue.BITS),
    *("cider_d", "meteor", "bleu_4", "rouge_l"),
)


@dataclass(frozen=True)
class RankingQuery:
    """A request; `steps`: the end of each run, `percent`: the part of it that is looked at."""

    dataset: str
    split: str | None
    target: str
    labels: Mapping[str, str]
    percent: float | None = None
    steps: float | None = None
    sure: float = 0.95
    average: int = 1


@dataclass(frozen=True)
class SweepScores:
    """Trainings and their scores: `early` by metric and run, `finals` of the target by run."""

    pinned: PinnedSplit
    found: SweepTrainings
    percent: float
    early: Mapping[str, Mapping[str, float]]
    finals: Mapping[str, float]
    target: MetricSpec
    curves: MetricCurves | None
    draws: Mapping[int | None, ScoreDraws]

    @property
    def open(self) -> list[str]:
        return [run for run in self.found.sweep if run not in self.finals]

    def find_leader(self) -> str | None:
        """Find the run with the best final score of the sweep, if any has ended."""
        ended = (run for run in self.found.sweep if run in self.finals)
        return max(ended, key=lambda run: self.target.sign * self.finals[run], default=None)

    def list_past(self) -> tuple[list[str], list[EndedTraining]]:
        """List the metrics that all open runs and the most past trainings have, and these."""
        runs = {
            metric: [run for run in self.found.past if run in early and run in self.finals]
            for metric, early in self.early.items()
            if all(run in early for run in self.open)
        }
        most = max(map(len, runs.values()), default=0)
        metrics = [metric for metric, having in runs.items() if len(having) == most]
        shared = [run for run in self.found.past if all(run in runs[each] for each in metrics)]
        return metrics, [
            EndedTraining(
                self.found.name_group(run),
                self.target.sign * self.finals[run],
                {metric: self.early[metric][run] for metric in metrics},
            )
            for run in shared[:_MOST_PAST]
            if metrics
        ]


def read_sweep_scores(parts: ServiceParts, pinned: PinnedSplit, asked: RankingQuery) -> SweepScores:
    target = catalogue.find_metric(asked.target)
    names = {target.name, *(catalogue.find_metric(name).name for name in _PREDICTORS)}
    with parts.records.reading() as connection:
        labelled, _ = training_scores.find_checkpoints(connection, pinned, _MOST)
        identities = [one.id for one in labelled]
        shown = training_scores.read_shown_scores(connection, pinned, identities, names)
        whole = {identity for having in shown.values() for identity in having}
        checkpoints = [one for one in labelled if one.id in whole]
        found = sweep_trainings.divide_trainings(checkpoints, asked.labels, asked.steps)
        curves = {
            name: training_scores.build_curves(
                shown[name], checkpoints, found.trainings, found.sweep
            )
            for name in sorted(names & shown.keys())
        }
        of_target = {target.name: curves[target.name]} if target.name in curves else {}
        known = training_scores.read_final_draws(connection, of_target)
    percent = asked.percent or found.find_share() or 100.0
    finals = _list_finals(found, curves.get(target.name), asked.average)
    early = {name: _list_early(found, one, percent, asked.average) for name, one in curves.items()}
    return SweepScores(
        *(pinned, found, percent, early, finals, target, curves.get(target.name), known)
    )


def _list_finals(
    found: SweepTrainings, curves: MetricCurves | None, average: int
) -> dict[str, float]:
    pairs = zip(found.trainings, curves.curves if curves else (), strict=False)
    finals = ((run, curve.average_final(average)) for run, curve in pairs if curve)
    return {run: final[0] for run, final in finals if final is not None}


def _list_early(
    found: SweepTrainings, curves: MetricCurves, percent: float, average: int
) -> dict[str, float]:
    pairs = zip(found.trainings, curves.curves, strict=True)
    early = ((run, curve.average_early(percent, average)) for run, curve in pairs if curve)
    return {run: score for run, score in early if score is not None}
