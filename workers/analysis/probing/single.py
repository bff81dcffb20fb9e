"""The probe that uses one training sentence as the caption of every image."""

from dataclasses import replace

from workers.analysis.probing.asking import Asked, Trial, left_out, row
from workers.analysis.probing.constant import search
from workers.analysis.probing.constant.search import Best
from workers.analysis.probing.table import Row

CONSTANT, CONSTANT_AS_PEOPLE, SYSTEM = "single sentence", "single sentence, as RvR", "system"
_PARTS = 1000  # in a step of progress


def single(asked: Asked) -> list[Row]:
    """Score the sentence that is best for all images together: against all references, and against
    the reference sets that people are compared with. For comparison, score the system against all
    references.
    """
    material = asked.material
    if not material.training or not material.references:
        missing = "training captions to choose from" if material.references else "images"
        return [Row("single", CONSTANT, reason=f"no {missing}")]
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
    rows = [row("single", CONSTANT, found[:1], text=best.text)]
    if many:
        turns = found[1 : 1 + many]
        rows.append(
            row("single", CONSTANT_AS_PEOPLE, turns, text=best.text, note=left_out(material))
        )
    if material.outputs is not None:
        rows.append(row("single", SYSTEM, found[-1:], rows[0]))
    return rows


def _search(asked: Asked, steps: int) -> Best:
    return search.best(
        asked.material.training or (),
        asked.material.complete,
        asked.options.objective,
        state=asked.options.state,
        progress=lambda done, total: asked.progress(_PARTS * done // total, steps * _PARTS),
    )
