"""Manifests of ONNX bundles of pictures and pieces of words: what is accepted, and T44 of these
fields: what is refused, with its place, before anything is opened.
"""

import json
import os
import re
import shutil

import pytest

from helpers import onnx_bundle_files as files
from helpers import tokenizer_files
from helpers.contract_files import with_changes
from service.contract.errors import InvalidCheckpoint
from service.contract.formats import model_formats, onnx_bundles, packages

HEIGHT, WIDTH = 5, 6
PREPROCESSING = {"size": {"height": HEIGHT, "width": WIDTH}, "resample": 3}


def _judged(folder):
    with packages.open_package(folder) as package:
        return onnx_bundles.validate_onnx_bundle(package)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("onnx") / "mine"
    files.of_pixels(folder, tokenizer_files.byte_pieces(), PREPROCESSING, (3, HEIGHT, WIDTH))
    return folder


def test_what_a_bundle_says_of_itself_is_what_is_told_of_it(written):
    size = tokenizer_files.byte_pieces().get_vocab_size()
    bundle = _judged(written)
    assert (bundle.words, bundle.size) == ((), size)
    facts = model_formats.read_package_facts(written)
    assert (facts["inputs"], facts["units"]) == ("pixels", "pieces")
    assert (facts["vocabulary_size"], facts["encoder"], facts["feature_size"]) == (size, None, None)


ENCODER = {"name": "random", "digest": "none"}
WORDS = {"file": "vocabulary.json", "start": 1, "end": 2, "unknown": 3}
SIZE, MEAN = "preprocessing__size", "preprocessing__image_mean"
CROP = {"preprocessing__do_center_crop": True}
REFUSED = [
    ({SIZE: {"height": 10**6, "width": 4}}, "/height: expected at most 2048, found 1000000"),
    ({SIZE: {"height": 0, "width": 4}}, "expected at least 1"),
    ({SIZE: {"shortest_edge": 5}}, "expected all pictures to become one size"),
    (
        {**CROP, "preprocessing__crop_size": {"height": 6, "width": 6}},
        "expected a crop_size within the size, found [6, 6]",
    ),
    (
        {SIZE: {"height": HEIGHT, "width": WIDTH + 1}},
        "look.onnx, input 'pixels': expected float32 [?, 3, 5, 7], found float32 [?, 3, 5, 6]",
    ),
    ({"preprocessing__image_std": [0.5, 0, 0.5]}, "/image_std/1: expected other numbers than 0"),
    ({"preprocessing__image_std": [0.5, 1e-40, 1]}, "/image_std/1: expected other numbers than 0"),
    ({MEAN: [0.5, 0.5]}, "/preprocessing/image_mean: expected at least 3"),
    ({MEAN: [1e39, 0, 0]}, "expected at most 1000000"),
    ({"preprocessing__channels": "cmyk"}, "/channels: expected 'rgb' or 'bgr', found 'cmyk'"),
    ({"preprocessing__resample": 6}, "expected at most 5"),
    ({"preprocessing__do_solarize": True}, "/preprocessing/do_solarize: unknown field"),
    ({"pieces__file": "../tokenizer.json"}, "/pieces/file: expected a text like"),
    ({"pieces__file": "other.json"}, "expected a file other.json, found"),
    ({"pieces__file": "step.onnx"}, "names one file for two parts"),
    ({"pieces__size": 9_999}, "output 'scores': expected float32 [?, 9999]"),
    ({"pieces__size": 10**9}, "/pieces/size: expected at most 300000"),
    ({"pieces__start": 299_999}, "prescore.json, pieces/start: expected the id of one of"),
    ({"pieces__longest": 10**9}, "expected at most 65536"),
    (
        {"feature_size": 7, "encoder": ENCODER},
        "or preprocessing and look/pixels, found feature_size, encoder, preprocessing and look/pix",
    ),
    (
        {"look": {"file": "look.onnx", "features": "pixels"}},
        "found look/features and preprocessing",
    ),
    ({"preprocessing": None}, "found look/pixels"),
    (
        {"vocabulary": WORDS, "tokenizer": "blanks"},
        "expected vocabulary and tokenizer, or pieces, found vocabulary, tokenizer and pieces",
    ),
    ({"pieces": None}, "expected vocabulary and tokenizer, or pieces, found none"),
]


@pytest.fixture
def changed(written, tmp_path):
    """The bundle with another manifest."""

    def change(text):
        shutil.copytree(written, tmp_path / "changed")
        (tmp_path / "changed" / "prescore.json").write_text(text)
        return tmp_path / "changed"

    return change


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_a_manifest_that_does_not_fit_is_refused_with_its_place(changes, said, changed, written):
    manifest = json.loads((written / "prescore.json").read_text())
    with pytest.raises(InvalidCheckpoint, match=re.escape(said)):
        _judged(changed(json.dumps(with_changes(manifest, **changes))))


@pytest.mark.parametrize("number", ["NaN", '"0.5"'])
def test_means_are_numbers(number, changed, written):
    text = (written / "prescore.json").read_text()
    means = f'"image_mean": [0.5, {number}, 0.5], "resample"'
    with pytest.raises(InvalidCheckpoint, match=r"^prescore\.json.*(expected|is not JSON)"):
        _judged(changed(text.replace('"resample"', means)))


def test_a_huge_tokenizer_is_refused_unread(changed, written):
    folder = changed((written / "prescore.json").read_text())
    os.truncate(folder / "tokenizer.json", 64_000_001)
    said = r"tokenizer.json: 64,000,001 bytes, at most 64,000,000"
    with pytest.raises(InvalidCheckpoint, match=said):
        _judged(folder)
