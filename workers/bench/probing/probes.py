"""The six probes by name; those of people against machines, and of one sentence for all images."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from service.contract.errors import InvalidRequest
from service.contract.metrics import catalogue
from workers.bench.probing import constant_search
from workers.bench.probing.constant_search import BestSentence
from workers.bench.probing.inputs import (
    ProbeArguments,
    ProbeContext,
    ProbeMaterial,
    Trial,
    describe_left_out,
    explain_single_references,
    make_probe_row,
)
from workers.bench.probing.scoring import ProbeTableRow, Scorer
from workers.bench.probing.word_probes import WORD_PROBES, probe_words
from workers.progress import Progress, ignore_progress

CONSTANT_ROW, CONSTANT_AS_PEOPLE_ROW = "single sentence", "single sentence, as RvR"
SYSTEM_ROW = "system"
_PARTS = 1000  # in a step of progress


def probe_single(asked: ProbeContext) -> list[ProbeTableRow]:
    """Score the sentence that is best for all images together: against all references, and against
    the reference sets that people are compared with. For comparison, score the system against all
    references.
    """
    material = asked.material
    if not material.training or not material.references:
        missing = "training captions to choose from" if material.references else "images"
        return [ProbeTableRow("single", CONSTANT_ROW, reason=f"no {missing}")]
    many = material.columns
    steps = 2 + many + (material.outputs is not None)
    best = _search(asked, steps)
    told = replace(
        asked, progress=lambda done, _: asked.progress((1 + done) * _PARTS, steps * _PARTS)
    )
    trials: list[Trial] = [([best.text] * len(material.references), None)]
    trials += [([best.text] * len(material.several), column) for column in range(many)]
    if material.outputs is not None:
        trials.append((material.outputs, None))
    found = told.scores(trials)
    rows = [make_probe_row("single", CONSTANT_ROW, found[:1], text=best.text)]
    if many:
        turns, note = found[1 : 1 + many], describe_left_out(material)
        rows.append(
            make_probe_row("single", CONSTANT_AS_PEOPLE_ROW, turns, text=best.text, note=note)
        )
    if material.outputs is not None:
        rows.append(make_probe_row("single", SYSTEM_ROW, found[-1:], rows[0]))
    return rows


def _search(asked: ProbeContext, steps: int) -> BestSentence:
    return constant_search.find_best_sentence(
        asked.material.training or (),
        asked.material.complete,
        asked.options.objective,
        state=asked.options.state,
        progress=lambda done, total: asked.progress(_PARTS * done // total, steps * _PARTS),
    )


PEOPLE_ROW, SYSTEM_AS_PEOPLE_ROW = "RvR", "SvR"


def probe_human(asked: ProbeContext) -> list[ProbeTableRow]:
    """Score people's references in turn against the others, and a system against the same sets."""
    material = asked.material
    many = material.columns if asked.options.columns is None else asked.options.columns
    reason = explain_single_references(material)
    if reason is None and not 0 < many <= material.columns:
        reason = f"expected 1 to {material.columns} columns of references, found {many}"
    if reason:
        return [ProbeTableRow("human", PEOPLE_ROW, reason=reason)]
    trials: list[Trial] = [(material.column(column), column) for column in range(many)]
    if material.outputs is not None:
        said = [material.outputs[image] for image in material.several]
        trials += [(said, column) for column in range(many)]
    found = asked.scores(trials)
    people = make_probe_row("human", PEOPLE_ROW, found[:many], note=describe_left_out(material))
    if material.outputs is None:
        return [people]
    system = make_probe_row("human", SYSTEM_AS_PEOPLE_ROW, found[many:], people)
    above = ", ".join(
        metric
        for metric, drop in system.drop.items()
        if drop < 0 and catalogue.find_metric(metric).higher_is_better
    )
    note = f"above people in {above}, which is not to be as good as people" if above else ""
    return [people, replace(system, note=note)]


PROBES: Mapping[str, Callable[[ProbeContext], list[ProbeTableRow]]] = {
    "human": probe_human,
    **{name: partial(probe_words, name) for name in WORD_PROBES},
    "single": probe_single,
}


def run_probe(
    probe: str,
    material: ProbeMaterial,
    score: Scorer,
    options: ProbeArguments = ProbeArguments(),
    *,
    progress: Progress = ignore_progress,
) -> list[ProbeTableRow]:
    """Run a probe; rows are compared with the first. A row without scores says why."""
    if probe not in PROBES:
        known = ", ".join(PROBES)
        raise InvalidRequest(f"expected one of the probes {known}, found {probe!r:.60}")
    return PROBES[probe](ProbeContext(material, score, options, progress))
