"""ONNX bundles as a whole: the manifest, the words, and what files are there (T44)."""

import re

import numpy as np
import pytest

from fuzz import edits
from helpers import onnx_bundle_files as files
from helpers.contract_files import with_changes
from helpers.onnx_bundle_files import MANIFEST, STATE, WORDS, model, node, tensor, values
from service.contract.errors import InvalidCheckpoint
from service.contract.formats import onnx_bundles, packages


def judged(folder):
    with packages.open_package(folder) as package:
        return onnx_bundles.validate_onnx_bundle(package)


def _files(folder, before=""):
    return [(before + each.name, each.read_bytes()) for each in folder.iterdir()]


def test_a_bundle_is_read_from_a_folder_and_a_zip(tmp_path):
    folder = files.write(tmp_path / "mine")
    expected = judged(folder)
    assert expected.words == tuple(WORDS)
    assert expected.parameters == sum(each.size for each in files.arrays().values())
    assert {name: place.start for name, place in expected.places.items()} == {"look": 0, "step": 0}
    packed = tmp_path / "mine.zip"
    packed.write_bytes(edits.packed(_files(folder, "mine/"), "zip"))
    found = judged(packed)
    assert (found.manifest, found.graphs) == (expected.manifest, expected.graphs)
    place = found.places["step"]
    assert packed.read_bytes()[place.start :][: place.size] == (folder / "step.onnx").read_bytes()


def test_a_compressed_graph_is_refused_since_it_cannot_be_read_in_place(tmp_path):
    folder, packed = files.write(tmp_path / "mine"), tmp_path / "mine.zip"
    packed.write_bytes(edits.packed(_files(folder), "deflated zip"))
    with pytest.raises(InvalidCheckpoint, match=r"look.onnx: is compressed; .*zip -0"):
        judged(packed)


def _manifest(**changes):
    return with_changes(MANIFEST, **changes)


REFUSED = [
    ({"prescore": "2"}, "/prescore: expected '1', found '2'"),
    ({"more": 1}, "/more: unknown field"),
    ({"look__file": "../look.onnx"}, "/look/file: expected a text like"),
    ({"look__file": "other.onnx"}, "expected a file other.onnx, found"),
    ({"step__file": "look.onnx"}, "names one file for two parts"),
    ({"step__words": "word"}, "step.onnx: expected an input 'word', found"),
    ({"step__logits": "x"}, "step.onnx: expected an output 'x', found"),
    ({"state": []}, "does not say what its input 'h' is"),
    (
        {"state": [{"first": "h9", "before": "h", "after": "h1"}]},
        "look.onnx: expected an output 'h9', found 'seen', 'h0'",
    ),
    ({"feature_size": 8}, "input 'pixels': expected float32 [?, 8], found float32 [?, 7]"),
    ({"images": [{"look": "seen", "step": "h"}]}, "the input of step 'h' is named twice"),
    (
        {"step__words": "h", "state": [{"first": "h0", "before": "ids", "after": "h1"}]},
        "step.onnx, input 'h': expected int64 [?], found float32 [?, 5]",
    ),
    ({"vocabulary__end": 9}, "expected the id of one of 9 words"),
    ({"vocabulary__unknown": 6}, "is also the start or the end"),
    ({"tokenizer": "mine"}, "expected 'karpathy' or 'blanks', found 'mine'"),
    ({"encoder": {"name": "a\x1b[2J", "digest": "x"}}, "expected no control characters"),
    ({"state": MANIFEST["state"] * 201}, "/state: expected at most 200 items"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_a_manifest_that_does_not_fit_is_refused_with_its_place(changes, said, tmp_path):
    with pytest.raises(InvalidCheckpoint, match=re.escape(said)):
        judged(files.write(tmp_path / "mine", manifest=_manifest(**changes)))


def test_words_follow_the_rules_of_all_vocabularies(tmp_path):
    with pytest.raises(InvalidCheckpoint, match=r"vocabulary.json, word 3: 'a' is also word 2"):
        judged(files.write(tmp_path / "one", words=["<pad>", "<start>", "a", "a", *WORDS[4:]]))
    with pytest.raises(InvalidCheckpoint, match=r"vocabulary.json: expected a JSON list"):
        judged(files.write(tmp_path / "two", words={"a": 1}))
    with pytest.raises(InvalidCheckpoint, match=r"step.onnx, output 'scores': expected float32"):
        judged(files.write(tmp_path / "three", words=[*WORDS, "more"]))


def test_a_manifest_that_is_no_json_is_refused(tmp_path):
    folder = files.write(tmp_path / "mine")
    (folder / "prescore.json").write_text('{"prescore": "1", "prescore": "1"}')
    with pytest.raises(InvalidCheckpoint, match=r"prescore.json: expected every key once"):
        judged(folder)


@pytest.mark.parametrize("name", ["step.onnx.data", "weights.data", "other.onnx"])
def test_files_of_values_beside_the_graphs_are_refused(name, tmp_path):
    folder = files.write(tmp_path / "mine")
    (folder / "README.md").write_text("notes may be there")
    judged(folder)
    (folder / name).write_bytes(b"x")
    with pytest.raises(InvalidCheckpoint, match=f"{name}: prescore.json does not name it"):
        judged(folder)


def test_a_graph_of_whole_captions_is_judged_too(tmp_path):
    score = model(
        [node("Gather", "E ids", "scores")],
        values(ids=["n", "l"], picture=("n", STATE)),
        values(scores=("n", "l", len(WORDS))),
        [tensor("E", np.eye(9, dtype=np.float32))],
    )
    manifest = _manifest(score={"file": "score.onnx", "words": "ids", "logits": "scores"})
    folder = files.write(tmp_path / "mine", manifest=manifest, score=score)
    assert set(judged(folder).graphs) == {"look", "step", "score"}
    score.graph.input.extend(values(mystery=(1,)))
    (folder / "score.onnx").write_bytes(score.SerializeToString())
    with pytest.raises(InvalidCheckpoint, match="does not say what its input 'mystery' is"):
        judged(folder)
