"""Oracle: the definition in loops (tests/oracles)."""

import numpy as np
import pytest

from helpers import object_list_files
from helpers.builders import captions_with_references
from oracles import chair as oracle
from workers.metrics import object_lists, postgen, references
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm

JVM = Jvm()  # never asked
SINGULAR = {
    "men": "man", "dogs": "dog", "puppies": "puppy", "geese": "goose", "bears": "bear",
    "trains": "train", "seats": "seat", "ties": "tie", "glasses": "glass", "tables": "table",
}  # fmt: skip
WORDS = [
    "a", "the", "red", "runs", "on", "hot", "wine", "teddy", "home", "plate", "baby", "adult",
    "passenger", "bow", "toilet", "seat", "dog", "bird", "bear", "man", "child", "train", "jet",
    "tie", "glass", "bus", "phone", "table", "stool", "air", "plane", *SINGULAR,
]  # fmt: skip


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    return object_lists.read_object_list(
        object_list_files.write(tmp_path_factory.mktemp("list") / "objects.txt")
    )


def _task(listed, captions, people):
    prepared = references.prepare_references(people, "none", JVM)
    rows = np.arange(len(captions))
    return ScoringInput(captions, rows, prepared, JVM, tools={"objects": listed})


def _mentions(caption):
    return oracle.mentions(caption, object_list_files.OBJECTS, SINGULAR)


@pytest.mark.parametrize("seed", range(3))
def test_scores_follow_from_the_definition(listed, seed):
    captions, people = captions_with_references(WORDS, 300, seed)
    captions[0], people[1] = "", [""]
    found = postgen.score_family("chair", _task(listed, captions, people))
    there = [{each for text in image for each in _mentions(text)} for image in people]
    of_all, with_one, shares, each = oracle.chair(list(map(_mentions, captions)), there)
    assert found.captions["chair_i"].tolist() == shares
    assert found.captions["chair_s"].tolist() == each
    assert found.corpus == pytest.approx({"chair_i": of_all, "chair_s": with_one}, rel=1e-12)
    assert 0 < of_all < with_one < 1


def test_a_signature_says_whose_list_it_was(listed):
    found = postgen.score_family("chair", _task(listed, ["a dog"], [["a dog", "a cat"]]))
    rest = f"refs:2|tok:none|objects:{listed.digest[:12]}|in:references|v:1"
    assert found.signatures == {name: f"{name}|{rest}" for name in ("chair_i", "chair_s")}
