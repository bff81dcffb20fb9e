"""CHAIR (Rohrbach et al. 2018): how many of the objects in captions are not in the pictures.

The objects of a picture are those that its references mention: there are no segmentations here, by
which the published figures know further ones. Which words mean an object says a list that a user
brings.
"""

from functools import cache

import numpy as np

from workers.metrics.family import FamilyMeasures, ScoringInput, Statistics
from workers.metrics.object_lists import ObjectList


def measure(task: ScoringInput) -> FamilyMeasures:
    """Shares of every caption: of its mentions of objects those that no reference mentions, 0 if it
    mentions none; and 1 if there is such a mention, else 0.
    """
    objects = _objects(task)
    mentioned = cache(objects.mentioned)
    mentions, wrong = np.empty((2, len(task.captions)))
    for place in task.places():
        there = {each for text in task.references_of(place) for each in mentioned(text)}
        said = mentioned(task.captions[place])
        mentions[place] = len(said)
        wrong[place] = sum(each not in there for each in said)
    with_wrong = (wrong > 0).astype(np.float64)
    return FamilyMeasures(
        {"chair_i": wrong / np.maximum(mentions, 1), "chair_s": with_wrong},
        {
            "mentions": mentions,
            "wrong": wrong,
            "with_wrong": with_wrong,
            "captions": np.ones(len(wrong)),
        },
    )


def corpus(statistics: Statistics) -> dict[str, float]:
    """Both are 0 where no caption mentions an object."""
    mentions, wrong, with_wrong, captions = (
        float(np.sum(statistics[name])) for name in ("mentions", "wrong", "with_wrong", "captions")
    )
    return {"chair_i": wrong / mentions if mentions else 0.0, "chair_s": with_wrong / captions}


def recipe(task: ScoringInput) -> str:
    return f"objects:{_objects(task).digest[:12]}|in:references"


def _objects(task: ScoringInput) -> ObjectList:
    objects: ObjectList = task.require_tool(
        "objects", "CHAIR needs a list of objects, and was given none"
    )
    return objects
