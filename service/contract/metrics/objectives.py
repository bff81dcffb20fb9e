"""Objectives of learned metrics: a row for each, with its result and the options of a training that
it takes. Requests, commands and tasks follow from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PEOPLE, CONTRAST, JUDGED = "people", "contrast", "judged"
USUAL = PEOPLE


@dataclass(frozen=True)
class TrainingObjective:
    """`family`: the metric whose model is trained; `task`: the kind of task that trains it;
    `takes`: the fields of a request that not every objective has; `needs`: those that it cannot do
    without.
    """

    what: str
    family: str
    task: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


OBJECTIVES: Mapping[str, TrainingObjective] = {
    PEOPLE: TrainingObjective(
        "who wrote a caption, a person or a captioner",
        family="nneval",
        task="learned",
        takes=(
            *("captioners", "trained_on", "stopping", "leave_out_rated", "frequencies"),
            *("features", "learning_rate", "epochs"),
        ),
        needs=("captioners",),
    ),
    CONTRAST: TrainingObjective(
        "people's captions above wrong ones made of them; it needs references alone",
        family="accord",
        task="learned_accord",
    ),
    JUDGED: TrainingObjective(
        "captions that people prefer above those that they do not",
        family="accord",
        task="learned_accord",
        takes=("judgements",),
        needs=("judgements",),
    ),
}
TRAINERS: Mapping[str, str] = {row.task: row.family for row in OBJECTIVES.values()}


def list_takers(objective: str, field: str) -> list[str]:
    """The objectives that a field of a request belongs to, where this one does not take it; empty
    where it does, and for fields of all objectives.
    """
    found = [name for name, row in OBJECTIVES.items() if field in row.takes]
    return [] if objective in found else found
