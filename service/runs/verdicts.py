"""Scores, repeated captions and verdicts of an evaluation, from its tasks and its request."""

import json
from collections.abc import Container, Mapping, Sequence

from prescore.models.evaluations import Estimate, Gate, GateScore, RepeatedCaption, Verdict
from prescore.models.metrics import MetricHealth, Score
from prescore.models.runs import RunStatus
from service.contract import results
from service.contract.formats.strict_json import replace_infinite
from service.contract.gates import gates
from service.contract.gates.evidence import (
    BaselineDifference,
    BaselineScore,
    Decision,
    ExpectedDifference,
    GateEvidence,
    ScoreBounds,
)
from service.contract.gates.gates import ParsedGate, ThresholdGate
from service.contract.metrics import catalogue
from service.contract.plan.estimates import ESTIMATE
from service.contract.plan.tasks import TERMINAL
from service.contract.results import (
    DecodingSummary,
    EstimateSummary,
    ScoreSummary,
    StoredBaseline,
    StoredEvaluation,
    TaskRow,
)

NOT_FINITE = "its value is infinite or undefined"


def decide_gates(
    rows: Sequence[TaskRow], request: StoredEvaluation
) -> tuple[list[Gate], Verdict | None]:
    """Each gate with its verdict, and the verdict on all gates."""
    asked = [gates.parse_gate(text) for text in request.gates]
    if not asked:
        return [], None
    names = list(dict.fromkeys(name for gate in asked for name in gate.metrics))
    found = read_scores(rows, {catalogue.find_metric(name).name for name in names})
    expected = read_expected_scores(rows)
    known = _evidence(rows, request, names, found, expected)
    shown = {**expected, **found}
    out = []
    for gate, decision in zip(asked, gates.decide_gates(asked, known), strict=True):
        has_none = decision[0] == "not_comparable" and _is_first(gate, request)
        verdict, detail = _without_baseline(decision, request) if has_none else decision
        out.append(
            Gate(
                gate=gate.text,
                verdict=verdict,
                detail=detail,
                no_baseline=has_none,
                baseline_failed=_is_against_failed(gate, request),
                scores=_scores(gate, known, shown),
            )
        )
    return out, gates.combine_verdicts(gate.verdict for gate in out)


def may_be_baseline(status: RunStatus, rows: Sequence[TaskRow], request: StoredEvaluation) -> bool:
    """True for an evaluation that succeeded, and whose gates passed or that has none."""
    return status == "succeeded" and (
        not request.gates or decide_gates(rows, request)[1] == "passed"
    )


def read_decoded(rows: Sequence[TaskRow]) -> list[DecodingSummary]:
    """Read what is known of captions that were decoded here."""
    found = (
        results.parse_summary(row, DecodingSummary) for row in rows if row["name"] == "captions"
    )
    return [one for one in found if one is not None]


def find_repeated_caption(
    decoded: Sequence[DecodingSummary], request: StoredEvaluation
) -> RepeatedCaption | None:
    """Find the caption that at least half of the images have, sent or decoded."""
    common = request.common or next((one.common for one in decoded), None)
    return None if common is None else RepeatedCaption(**common.model_dump())


def _without_baseline(decision: Decision, request: StoredEvaluation) -> Decision:
    """The decision on a gate that has no baseline yet, as the request says."""
    if request.if_no_baseline == "undecided":
        return decision
    verdict: Verdict = "passed" if request.if_no_baseline == "pass" else "failed"
    return verdict, f"{decision[1]}; counted as {verdict}"


def _is_first(gate: ParsedGate, request: StoredEvaluation) -> bool:
    kept = (request.baselines.get(name) for name in gate.metrics)
    return gate.needs_baseline and any(past is not None and past.is_first for past in kept)


def _is_against_failed(gate: ParsedGate, request: StoredEvaluation) -> bool:
    kept = (request.baselines.get(name) for name in gate.metrics)
    return gate.needs_baseline and any(past is not None and past.failed for past in kept)


def _evidence(
    rows: Sequence[TaskRow],
    request: StoredEvaluation,
    names: Sequence[str],
    found: Mapping[str, Score],
    expected: Mapping[str, Score],
) -> GateEvidence:
    """The evidence so far for the metrics of gates: scores or estimates, and baselines."""
    by_name = {row["name"]: row for row in rows}
    kept = request.baselines
    measured: dict[str, ScoreBounds] = {}
    lost: dict[str, str] = {}
    compared: dict[str, BaselineDifference | ExpectedDifference | str] = {}
    differing = _read_expected_differences(rows)
    for name in names:
        spec = catalogue.find_metric(name)
        score = found.get(spec.name)
        if score is not None and score.value is not None:
            both = score.value, score.value
            measured[name] = ScoreBounds(*both, score.signature, score.interval)
        elif (estimate := expected.get(spec.name)) and estimate.interval:
            measured[name] = ScoreBounds(*estimate.interval, estimate.signature)
        elif reason := _lost(score, by_name.get(catalogue.find_metric_task(name))):
            lost[name] = f"{name}: {reason}"
        test = by_name.get(kept[name].comparison or "") if name in kept else None
        against: BaselineDifference | ExpectedDifference | str | None = _compared(spec.name, test)
        if test is None or test["status"] not in ("done", "failed", "unavailable"):
            against = differing.get(spec.name, against)  # also where a verdict canceled the rest
        if against is not None:
            compared[name] = against
    return GateEvidence(measured, lost, _baselines(kept), compared, _distrusted(names, request))


def _lost(score: Score | None, row: TaskRow | None) -> str | None:
    """Why a metric has no value and never will; None while it may get one."""
    if score is not None:
        return NOT_FINITE
    if row is None:
        return "it is not computed"
    return _end(row) if row["status"] in TERMINAL else None


def _end(row: TaskRow) -> str:
    if row["status"] == "done":
        return "it has no value for these captions"
    reason = f": {json.loads(row['error'])['detail']}" if row["error"] else ""
    return f"the task {row['name']} is {row['status']}{reason}"


def _compared(metric: str, row: TaskRow | None) -> BaselineDifference | str | None:
    if row is None:
        return "the scores of the baseline's single captions are no longer stored"
    if row["status"] != "done":
        return _end(row) if row["status"] in TERMINAL else None
    summed = results.parse_summary(row, results.ComparisonSummary)
    found = None if summed is None else summed.comparison.get(metric)
    if summed is None or found is None or found.difference is None:
        return NOT_FINITE
    return BaselineDifference(
        found.difference, found.p, found.minimum_detectable, found.interval, summed.images_compared
    )


def _baselines(kept: Mapping[str, StoredBaseline]) -> dict[str, BaselineScore | str]:
    return {name: past.none_because or _baseline(past) for name, past in kept.items()}


def _baseline(past: StoredBaseline) -> BaselineScore:
    assert past.evaluation is not None
    assert past.value is not None
    assert past.signature is not None
    return BaselineScore(
        past.evaluation, past.value, past.signature, past.scored_on, past.label, past.failed
    )


def _distrusted(names: Sequence[str], request: StoredEvaluation) -> dict[str, str]:
    """Metrics in which one sentence for all images scores better than people, with the reason."""
    health = request.health or {}
    trusted = set(catalogue.expand_groups(request.trust))
    found = {}
    for name in names:
        known = health.get(catalogue.find_metric(name).name)
        if known is not None and name not in trusted and _is_poor(name, known):
            found[name] = (
                f"{name} cannot gate on this split: of it one sentence for all images has "
                f"{known.constant:.4g}, people have {known.human:.4g} (`trust` lets it gate)"
            )
    return found


def _is_poor(metric: str, health: MetricHealth) -> bool:
    constant, human = health.constant, health.human
    if constant is None or human is None:
        return False
    return constant > human if catalogue.find_metric(metric).higher_is_better else constant < human


def _scores(
    gate: ParsedGate, known: GateEvidence, shown: Mapping[str, Score]
) -> dict[str, GateScore]:
    tested = {} if isinstance(gate, ThresholdGate) else known.compared
    return {
        name: _score(
            gate,
            shown.get(catalogue.find_metric(name).name),
            known.baselines.get(name),
            tested.get(name),
        )
        for name in gate.metrics
    }


def _score(
    gate: ParsedGate,
    score: Score | None,
    baseline: BaselineScore | str | None,
    tested: BaselineDifference | ExpectedDifference | str | None,
) -> GateScore:
    value = score.value if score is not None else None
    past = baseline if isinstance(baseline, BaselineScore) else None
    test = tested if isinstance(tested, BaselineDifference) else None
    alike = past is not None and score is not None and score.signature == past.signature
    return GateScore(
        value=value,
        interval=score.interval if score is not None else None,
        baseline=past.value if past is not None else None,
        evaluation=past.evaluation if past is not None else None,
        difference=value - past.value if past is not None and value is not None and alike else None,
        difference_interval=test.interval if test is not None else None,
        margin=replace_infinite(gate.find_margin(past.value)) if past is not None else None,
        p=test.p if test is not None else None,
        minimum_detectable=test.minimum_detectable if test is not None else None,
    )


def read_scores(rows: Sequence[TaskRow], names: Container[str] | None = None) -> dict[str, Score]:
    """Scores by name, from tasks' summaries: all, or only `names`, since a run may have hundreds of
    scores and show three.
    """
    found: dict[str, Score] = {}
    for row in rows:
        scored = results.parse_summary(row, ScoreSummary)
        if scored is not None:
            for name, value in scored.scores.items():
                if names is None or name in names:
                    interval = scored.intervals.get(name)
                    found.setdefault(
                        name, results.build_score(name, value, scored.signature, interval)
                    )
    return found


def read_estimates(rows: Sequence[TaskRow]) -> dict[str, Estimate]:
    """Estimates by metric, from the latest look at the captions decoded so far."""
    looked = _looked(rows)
    return {} if looked is None else looked.estimate


def read_expected_scores(rows: Sequence[TaskRow]) -> dict[str, Score]:
    """The latest estimates as scores, by metric."""
    looked = _looked(rows)
    if looked is None:
        return {}
    return {
        name: results.build_score(name, said.value, looked.signature, said.interval)
        for name, said in looked.estimate.items()
    }


def _read_expected_differences(rows: Sequence[TaskRow]) -> dict[str, ExpectedDifference]:
    """Read the latest bounds of differences from baselines, by metric."""
    looked = _looked(rows)
    if looked is None:
        return {}
    return {
        name: ExpectedDifference(
            found.low,
            found.high,
            found.error,
            looked.estimate[name].images,
            looked.estimate[name].of,
        )
        for name, found in looked.differences.items()
    }


def _looked(rows: Sequence[TaskRow]) -> EstimateSummary | None:
    found = (
        results.parse_summary(row, EstimateSummary, partial=True)
        for row in rows
        if row["name"] == ESTIMATE
    )
    return next(filter(None, found), None)


def select_shown_scores(rows: Sequence[TaskRow], request: StoredEvaluation) -> dict[str, Score]:
    """The scores requested by name or in gates and, for `all` pre-gen scores, the headline ones."""
    wanted: list[str] = []
    if request.checkpoint is not None or request.columns is not None:
        wanted += request.pregen if isinstance(request.pregen, list) else catalogue.HEADLINE
    wanted += catalogue.expand_groups(request.postgen)
    wanted += gates.list_gate_metrics(request.gates)
    full = {name: catalogue.find_metric(name).name for name in wanted}
    found = read_scores(rows, set(full.values()))
    return {name: found[of] for name, of in full.items() if of in found}
