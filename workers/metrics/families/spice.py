"""SPICE 1.0: the F-score of a caption's tuples against those of all its references together."""

from functools import cache

import numpy as np

from service.contract.formats.outputs import LONGEST_PARSED
from workers.metrics.family import FamilyMeasures, ScoringInput, Statistics
from workers.metrics.java.jvm_child import find_package_file
from workers.metrics.scene_graphs import Parse, SceneGraph, Synonyms
from workers.metrics.spice_tuples import PARSER

RECIPE = f"parser:{PARSER}|words:{LONGEST_PARSED}"
_WORDNET = "spice/lib/Meteor-1.5.jar"
_COLUMNS = ("f", "precision", "recall", "true_positives", "false_positives", "false_negatives")


def measure(task: ScoringInput) -> FamilyMeasures:
    complaint = "SPICE needs a parser of captions, and was given none"
    parse: Parse = task.require_tool("parse", complaint)
    answered = task.rows.tolist()
    rows = sorted(set(answered))
    people = {row: task.references.captions[row] for row in rows}
    parsed = parse([*task.captions, *(text for row in rows for text in people[row])])
    synonyms = _read_synonyms()
    wanted = {
        row: SceneGraph((found for text in texts for found in parsed[text]), synonyms)
        for row, texts in people.items()
    }
    table = [
        _compare(SceneGraph(parsed[task.captions[place]], synonyms), wanted[answered[place]])
        for place in task.places()
    ]
    columns = np.array(table, np.float64).T.copy()
    return FamilyMeasures({"spice": columns[0]}, dict(zip(_COLUMNS, columns, strict=True)))


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"spice": float(np.mean(statistics["f"]))}


def _compare(caption: SceneGraph, references: SceneGraph) -> tuple[float, ...]:
    """The values of _COLUMNS, in the jar's order of operations, so that the last digits agree.
    Several tuples of a caption may match one tuple of the references: false negatives count the
    rest, and may be below 0.
    """
    right = caption.known_to(references)
    precision = right / len(caption) if len(caption) and len(references) else 0.0
    recall = right / len(references) if len(references) else 0.0
    both = precision * recall
    f = 2.0 * both / (precision + recall) if both else 0.0
    return f, precision, recall, right, len(caption) - right, len(references) - right


@cache
def _read_synonyms() -> Synonyms:
    return Synonyms(find_package_file(_WORDNET))
