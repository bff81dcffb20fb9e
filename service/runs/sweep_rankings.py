"""The ranking of a sweep: which of its runs can be stopped, by their early scores and by trainings
that have ended. From the record alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prescore.models.sweeps import SWEEP_COLUMNS, SweepRanking, SweepRun
from prescore.plain_text import format_count
from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from service.engine.service_parts import ServiceParts
from service.runs import early_forecasts, leaderboard, sweep_scores, training_scores
from service.runs.early_forecasts import EarlyForecast, EndedTraining, RunOutlook
from service.runs.signal_noise import DecisionAccuracy
from service.runs.sweep_scores import RankingQuery, SweepScores
from service.runs.training_scores import MetricCurves
from service.stored import datasets

_FEWEST, _FEWEST_GROUPS = 8, 3  # past trainings


@dataclass(frozen=True)
class _Prospects:
    """Prospects of runs by early scores. `odds`: the probability of each to be the best."""

    forecast: EarlyForecast
    past: int
    accuracy: DecisionAccuracy
    odds: Mapping[str, float]
    kept: frozenset[str]
    probability: float

    def describe(self) -> dict[str, Any]:
        """Give facts of the forecast, by the names of `SweepRanking`'s fields."""
        return {
            "past": self.past,
            "groups": self.forecast.groups,
            "metric": catalogue.find_shown_name(self.forecast.metric),
            "error": self.forecast.error,
            **self.accuracy._asdict(),
        }

    def describe_run(self, run: str, scores: SweepScores) -> dict[str, Any]:
        """Give the prospects of a run, by the names of `SweepRun`'s fields."""
        early = scores.early[self.forecast.metric].get(run)
        found = {"early": early, "best": self.odds[run], "advice": "ended"}
        if early is None or run in scores.finals:
            return found
        value, *bounds = (scores.target.sign * one for one in self.forecast.expect(early))
        return {
            **found,
            "is_covered": self.forecast.covers(early),
            "expected": value,
            "interval": tuple(sorted(bounds)),
            "advice": "keep" if run in self.kept else "stop",
        }


def rank_sweep(parts: ServiceParts, asked: RankingQuery) -> SweepRanking:
    """Rank the runs with these labels; InvalidRequest without labels, or if the target is neither
    better high nor low.
    """
    leaderboard.check_direction(asked.target, "target")
    pinned = datasets.pin_usual_split(parts.records, asked.dataset, asked.split)
    if not asked.labels:
        raise InvalidRequest(
            "expected labels of the sweep's runs, as label.NAME=VALUE, found none",
            [("/query/labels", "expected one label or more")],
        )
    scores = sweep_scores.read_sweep_scores(parts, pinned, asked)
    lacking = _explain_sweep(scores, asked)
    prospects = None
    if lacking is None:
        metrics, past = scores.list_past()
        lacking = _explain_past(scores, metrics, past)
        if lacking is None:
            prospects = _judge_runs(scores, metrics, past, asked)
            lacking = _explain_prospects(scores, prospects, asked)
    return _build_answer(scores, asked, prospects, lacking)


def build_ranking_table(parts: ServiceParts, asked: RankingQuery) -> Iterator[Sequence[object]]:
    """The runs as rows of a table, with the columns' names first."""
    yield SWEEP_COLUMNS
    for run in rank_sweep(parts, asked).runs:
        yield list(run.cells())


def _judge_runs(
    scores: SweepScores,
    metrics: Sequence[str],
    past: Sequence[EndedTraining],
    asked: RankingQuery,
) -> _Prospects:
    forecast = early_forecasts.choose_forecast(past, metrics)
    early = scores.early[forecast.metric]
    places = {run: at for at, run in enumerate(scores.found.trainings)}
    curves = scores.curves.curves if scores.curves else ()
    ended = [curves[places[run]] for run in scores.found.past]
    order = training_scores.order_finals(
        MetricCurves("", ended), scores.draws, scores.target, asked.average
    )
    sign = catalogue.find_metric(forecast.metric).sign
    signed = [sign * early[run] if run in early else None for run in scores.found.past]
    leader = scores.find_leader()
    best = None if leader is None else scores.target.sign * scores.finals[leader]
    odds = forecast.compute_odds([early[run] for run in scores.open], best)
    outlooks = [
        RunOutlook(chance, forecast.expect(early[run]).value, forecast.covers(early[run]))
        for run, chance in zip(scores.open, odds, strict=True)
    ]
    ended_runs = len(scores.found.sweep) - len(odds)
    kept, probability = early_forecasts.keep_best(outlooks, asked.sure, ended_runs)
    known = dict.fromkeys(scores.found.sweep, 0.0) | dict(zip(scores.open, odds, strict=True))
    if leader is not None:
        known[leader] = max(0.0, 1 - sum(odds))
    return _Prospects(
        forecast=forecast,
        past=len(past),
        accuracy=order.measure_accuracy(signed),
        odds=known,
        kept=frozenset(scores.open[at] for at in kept),
        probability=probability,
    )


def _explain_sweep(scores: SweepScores, asked: RankingQuery) -> str | None:
    """Explain, with numbers, why the sweep itself cannot be ranked yet; None if it can."""
    found, percent = scores.found, scores.percent
    if len(found.sweep) < 2:
        given = ", ".join(f"{name}={value}" for name, value in asked.labels.items())
        return (
            f"expected two runs or more with the labels {given:.200}, run and step on "
            f"{scores.pinned}, found {len(found.sweep)}"
        )
    leader = scores.find_leader()
    if leader is not None and not scores.open:
        score = scores.finals[leader]
        return f"all runs have ended; {leader} has the best {asked.target}, {score:.4g}"
    unscored = [run for run in scores.open if found.compute_percent(run) == 100]
    if unscored:
        return f"expected a final {asked.target} of {unscored[0]}, which has ended, found none"
    behind = [run for run in scores.open if not found.has_reached(run, percent)]
    if behind:
        far = found.compute_percent(behind[0])
        return (
            f"expected all runs at {percent:.4g} % of their steps, found {behind[0]} at {far:.4g} %"
            f" ({len(behind)} of {format_count(len(found.sweep), 'run')} are not there); one that "
            "does not go on needs the label stopped"
        )
    return _explain_unscored(scores)


def _explain_unscored(scores: SweepScores) -> str | None:
    """Explain which run has no early score of a metric that the others have."""
    if scores.list_past()[0]:
        return None
    having = max(scores.early.values(), key=lambda early: sum(run in early for run in scores.open))
    without = [run for run in scores.open if run not in having] or scores.open
    return (
        f"expected early scores of one metric in all runs, up to {scores.percent:.4g} % of their "
        f"steps, found none in {without[0]}"
    )


def _explain_past(
    scores: SweepScores, metrics: Sequence[str], past: Sequence[EndedTraining]
) -> str | None:
    groups = len({one.group for one in past})
    if len(past) >= _FEWEST and groups >= _FEWEST_GROUPS:
        return None
    shown = ", ".join(map(catalogue.find_shown_name, metrics))
    return (
        f"expected {_FEWEST} past trainings of {_FEWEST_GROUPS} recipes or more on "
        f"{scores.pinned}, with a final {catalogue.find_shown_name(scores.target.name)} and, up to "
        f"{scores.percent:.4g} % of their steps, {shown:.200}; found {len(past)} of {groups}"
    )


def _explain_prospects(
    scores: SweepScores, prospects: _Prospects, asked: RankingQuery
) -> str | None:
    """Explain, with numbers, why no run can be stopped; None where some can."""
    accuracy, interval, pairs = prospects.accuracy
    low = accuracy if interval is None else interval[0]
    name = catalogue.find_shown_name(prospects.forecast.metric)
    if accuracy is None or low is None:
        return f"no two past trainings differ in their final {asked.target}"
    if low <= 0.5:
        bounds = "" if interval is None else " [{:.2f}, {:.2f}]".format(*interval)
        return (
            f"at {scores.percent:.4g} % {name} orders {format_count(pairs, 'pair')} of past "
            f"trainings with the accuracy {accuracy:.2f}{bounds}; expected an interval above 0.50"
        )
    if len(prospects.kept) < len(scores.open):
        return None
    early = scores.early[prospects.forecast.metric]
    alike = [run for run in scores.open if prospects.forecast.covers(early[run])]
    if alike:
        least = min(alike, key=lambda run: prospects.odds[run])
        return (
            f"without {least}, which promises least, the best of "
            f"{format_count(len(scores.found.sweep), 'run')} is kept with "
            f"{100 * (1 - prospects.odds[least]):.1f} %, expected {100 * asked.sure:.4g} %"
        )
    return f"no past training had an early {name} such as {early[scores.open[0]]:.4g}"


def _build_answer(
    scores: SweepScores,
    asked: RankingQuery,
    prospects: _Prospects | None,
    lacking: str | None,
) -> SweepRanking:
    found = scores.found
    runs = [_build_run(run, scores, prospects, lacking) for run in found.sweep]
    runs.sort(key=partial(_measure_promise, scores.target.sign), reverse=True)
    past = {"past": len(found.past), "groups": len(set(map(found.name_group, found.past)))}
    return SweepRanking(
        dataset=scores.pinned.out,
        labels=dict(asked.labels),
        target=asked.target,
        sure=asked.sure,
        average=asked.average,
        percent=scores.percent if scores.open else None,
        usual_end=found.usual_end,
        left_out=dict(found.left_out),
        probability=None if prospects is None or lacking else prospects.probability,
        runs=runs,
        not_yet=lacking,
        **(past if prospects is None else prospects.describe()),
    )


def _measure_promise(sign: int, run: SweepRun) -> tuple[float, float]:
    final = run.expected if run.final is None else run.final
    return run.best or 0.0, -math.inf if final is None else sign * final


def _build_run(
    run: str, scores: SweepScores, prospects: _Prospects | None, lacking: str | None
) -> SweepRun:
    told = {} if prospects is None else prospects.describe_run(run, scores)
    return SweepRun(
        run=run,
        step=scores.found.reached[run][-1],
        percent=scores.found.compute_percent(run),
        final=scores.finals.get(run),
        **told | ({"advice": None} if lacking else {}),
    )
