"""The guide's program for a chat model of transformers, with a tiny model of random weights."""

import numpy as np
import pytest
from safetensors.torch import load_file

from helpers import synthetic_pictures, vision_language_folders
from helpers.documents import read
from prescore.recording import words
from service.contract.assets import AssetFolders
from service.contract.column_options import ColumnOptions
from service.contract.formats import bundles, columns_values
from service.contract.formats.bundles import BundleItem
from workers.inference import columns
from workers.jobs.toolbox import Toolbox
from workers.offline.recordings import ModelRecording
from workers.offline.sources import find_local_source

PAGE = "deploy/guide/record_columns.py"
NAME = "llava-hf/llava-1.5-7b-hf"
PROMPT = "Describe the image in one sentence."
ITEMS = (
    BundleItem("0000.png", "test", ("Two dogs, one na\u00efve cat.", "a dog")),
    BundleItem("other.png", "train", ("a dog",)),
    BundleItem("0001.png", "test", ("x", "A child plays \u2026 with 2 dogs \U0001f415", "The dog")),
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of other people's packages


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A model whose tokenizer knows capital letters, and a bundle, where the program runs."""
    monkeypatch.chdir(tmp_path)
    bundles.write_bundle_folder(tmp_path / "flickr8k", ITEMS)
    synthetic_pictures.write_pictures(tmp_path / "flickr8k", synthetic_pictures.pictures(2))
    found = vision_language_folders.save_model(tmp_path / NAME, "llava", prompt=PROMPT)
    found.processor.save_pretrained(found.folder)
    return found


def test_the_pages_program_records_what_the_library_and_the_engine_compute(saved, tmp_path):
    scope = {}
    exec(compile(read(PAGE), PAGE, "exec"), scope)  # noqa: S102  our own document
    path = tmp_path / "model.columns.safetensors"
    found = load_file(path)
    expected = [
        float(each)
        for item in ITEMS
        if item.split == "test"
        for reference in item.references
        for each in _log_probabilities(scope, saved, item.image, reference)
    ]
    np.testing.assert_allclose(found["logp"], expected, atol=1e-4)
    assert len(set(found["rank"].tolist())) > 5
    header = columns_values.validate_columns(path)
    assert (header.pieces, header.tokenizer) == ("llava", "blanks")
    toolbox = Toolbox("cpu", AssetFolders(tmp_path))
    source = find_local_source("flickr8k/test")
    parts = tmp_path / "parts"
    recording = ModelRecording(NAME, saved.folder, source, ColumnOptions(), parts, toolbox)
    recording.record_columns(tmp_path / "engine")
    toolbox.close()
    for units in ("words", "pieces"):
        ours, theirs = (
            columns.read_uploaded_columns(each, units)[0] for each in (path, tmp_path / "engine")
        )
        np.testing.assert_allclose(ours.logp, theirs.logp, atol=1e-4)
        np.testing.assert_array_equal(ours.caption_offsets, theirs.caption_offsets)


def _log_probabilities(scope, saved, image, reference):
    """The library's own, of the pieces of a reference as it is written."""
    picture = scope["Image"].open(f"flickr8k/images/{image}").convert("RGB")
    pieces = scope["tokenizer"](words.join_words(reference, "blanks"), add_special_tokens=False)
    ids = [*pieces.input_ids, vision_language_folders.END]
    return vision_language_folders.log_probabilities(saved, picture, ids)
