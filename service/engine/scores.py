"""The scores that tasks have computed, and which of them an evaluation shows."""

from collections.abc import Container, Sequence

from prescore.models.evaluations import Estimate
from prescore.models.metrics import Score
from service.contract import results
from service.contract.gates import gates
from service.contract.metrics import catalogue
from service.contract.plan.estimates import ESTIMATE
from service.contract.results import EstimateSummary, ScoreSummary, StoredEvaluation, TaskRow


def brought(rows: Sequence[TaskRow], names: Container[str] | None = None) -> dict[str, Score]:
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


def estimated(rows: Sequence[TaskRow]) -> dict[str, Estimate]:
    """Estimates by metric, from the latest look at the captions decoded so far."""
    looked = _looked(rows)
    return {} if looked is None else looked.estimate


def expected(rows: Sequence[TaskRow]) -> dict[str, Score]:
    """The latest estimates as scores, by metric."""
    looked = _looked(rows)
    if looked is None:
        return {}
    return {
        name: results.build_score(name, said.value, looked.signature, said.interval)
        for name, said in looked.estimate.items()
    }


def _looked(rows: Sequence[TaskRow]) -> EstimateSummary | None:
    found = (
        results.parse_summary(row, EstimateSummary, partial=True)
        for row in rows
        if row["name"] == ESTIMATE
    )
    return next(filter(None, found), None)


def shown(rows: Sequence[TaskRow], request: StoredEvaluation) -> dict[str, Score]:
    """The scores requested by name or in gates and, for `all` pre-gen scores, the headline ones."""
    wanted: list[str] = []
    if request.checkpoint is not None or request.columns is not None:
        wanted += request.pregen if isinstance(request.pregen, list) else catalogue.HEADLINE
    wanted += catalogue.expand_groups(request.postgen)
    wanted += gates.list_gate_metrics(request.gates)
    full = {name: catalogue.find_metric(name).name for name in wanted}
    found = brought(rows, set(full.values()))
    return {name: found[of] for name, of in full.items() if of in found}
