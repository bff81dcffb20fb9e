"""Human against machine, leave one out: equation (1) of Caglayan, Madhyastha and Specia (2020)."""

from dataclasses import replace

from service.contract.metrics import catalogue
from workers.analysis.probing.asking import Asked, Trial, left_out, no_rest, row
from workers.analysis.probing.table import Row

PEOPLE, SYSTEM = "RvR", "SvR"


def human(asked: Asked) -> list[Row]:
    """Score each column of references in turn against the others, and a system against the same
    sets. A positive drop says how much the system lacks.
    """
    material = asked.material
    many = material.columns if asked.options.columns is None else asked.options.columns
    reason = no_rest(material)
    if reason is None and not 0 < many <= material.columns:
        reason = f"expected 1 to {material.columns} columns of references, found {many}"
    if reason:
        return [Row("human", PEOPLE, reason=reason)]
    trials: list[Trial] = [(material.column(column), column) for column in range(many)]
    if material.outputs is not None:
        said = [material.outputs[image] for image in material.several]
        trials += [(said, column) for column in range(many)]
    found = asked.scores(trials)
    people = row("human", PEOPLE, found[:many], note=left_out(material))
    if material.outputs is None:
        return [people]
    system = row("human", SYSTEM, found[many:], people)
    above = ", ".join(metric for metric in system.drop if _is_above(metric, system))
    note = f"above people in {above}, which is not to be as good as people" if above else ""
    return [people, replace(system, note=note)]


def _is_above(metric: str, system: Row) -> bool:
    return bool(catalogue.metric(metric).higher_is_better) and system.drop[metric] < 0
