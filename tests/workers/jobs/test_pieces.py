"""The tasks of a model whose tokens are pieces of words, which looks at pictures."""

import numpy as np
import pytest

from helpers import huggingface_folders as folders
from helpers import synthetic_pictures
from service.contract.assets import AssetFolders
from workers import jobs
from workers.inference import checkpoints, columns, scoring
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.metrics import pregen
from workers.progress import ignore_progress

# In the ordinary run the same is seen over HTTP (tests/service/http/test_transformers.py).
pytestmark = [pytest.mark.slow]

IMAGES = 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folders.make(tmp_path_factory.mktemp("m") / "model", "vit-gpt2", trained=True)


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    synthetic_pictures.write_dataset(folder, IMAGES)
    return folder


def _run(kind, saved, bundle, tmp_path, parts=(), **parameters):
    inputs = {"checkpoint": saved.folder, "dataset": bundle}
    digests = dict.fromkeys(inputs, "sha256:" + "0" * 64)
    toolbox = Toolbox("cpu", AssetFolders(tmp_path), sandbox="off")
    request = JobRequest(inputs, digests, parts, {"split": "test", **parameters})
    found = jobs.OTHERS[kind](request, toolbox, ignore_progress)
    path = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
    found.write(path)
    return found, path


def _scores(path, tmp_path):
    request = JobRequest({"columns": path}, {}, (), {})
    return jobs.OTHERS["pregen"](
        request, Toolbox("cpu", AssetFolders(tmp_path)), ignore_progress
    ).summary


@pytest.mark.parametrize("units", ["words", "pieces"])
def test_scores_are_of_words_unless_pieces_are_asked_for(units, saved, bundle, tmp_path):
    asked = {} if units == "words" else {"units": units}
    _, path = _run("columns", saved, bundle, tmp_path, **asked)
    model = checkpoints.open_captioner(saved.folder, sandbox="off")
    names = [f"{place:04}.png" for place in range(IMAGES)]
    encoded = model.tokens.encode(synthetic_pictures.sentences(IMAGES))
    expected = scoring.compute_columns(model, model.inputs(bundle, names), encoded)
    if units == "words":
        expected = columns.merge_word_pieces(expected, encoded.word_offsets)
    found, metadata = columns.read_columns(path)
    np.testing.assert_array_equal(found.logp, expected.logp)
    np.testing.assert_array_equal(found.rank, expected.rank)
    assert metadata["units"] == units
    whole = _scores(path, tmp_path)
    assert whole.signature == f"pregen|columns|fp32|units:{units}|v:1"
    prefixes, _ = _run("prefix", saved, bundle, tmp_path, **asked)
    assert prefixes.summary.signature == f"pregen|prefix|units:{units}|v:1"
    assert prefixes.summary.scores == {name: whole.scores[name] for name in pregen.INSTANT}


def test_shards_of_columns_are_joined_with_what_they_are_of(saved, bundle, tmp_path):
    whole = _run("columns", saved, bundle, tmp_path)[1]
    parts = [
        _run("columns", saved, bundle, tmp_path, images=images)[1] for images in ([0, 5], [5, 12])
    ]
    joined = _run("columns", saved, bundle, tmp_path, parts=parts)[1]
    assert columns.read_columns(joined)[1] == columns.read_columns(whole)[1]
    np.testing.assert_allclose(
        columns.read_columns(joined)[0].logp, columns.read_columns(whole)[0].logp, atol=1e-5
    )
