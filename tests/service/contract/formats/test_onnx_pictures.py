"""Manifests of ONNX bundles of pictures and pieces of words: what is accepted, and T44 of these
fields: what is refused, with its place, before anything is opened.
"""

import copy
import json
import os
import re

import pytest

import onnx_bundle_files as files
import tokenizer_files
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


@pytest.fixture
def changed(written, tmp_path):
    """The bundle with another manifest: links to its other files."""

    def change(text):
        folder = tmp_path / "changed"
        folder.mkdir()
        for each in written.iterdir():
            os.link(each, folder / each.name)
        (folder / "prescore.json").unlink()
        (folder / "prescore.json").write_text(text)
        return folder

    return change


def test_what_a_bundle_says_of_itself_is_what_is_told_of_it(written):
    size = tokenizer_files.byte_pieces().get_vocab_size()
    bundle = _judged(written)
    assert (bundle.words, bundle.size) == ((), size)
    facts = model_formats.read_package_facts(written)
    assert (facts["inputs"], facts["units"]) == ("pixels", "pieces")
    assert (facts["vocabulary_size"], facts["encoder"], facts["feature_size"]) == (size, None, None)


def _with(**changes):
    def change(manifest):
        for path, value in changes.items():
            place, names = manifest, path.split("__")
            for name in names[:-1]:
                place = place[name]
            if value is None:
                del place[names[-1]]
            else:
                place[names[-1]] = value
        return manifest

    return change


ENCODER = {"name": "random", "digest": "none"}
WORDS = {"file": "vocabulary.json", "start": 1, "end": 2, "unknown": 3}
SIZE = "preprocessing__size"
REFUSED = {
    "a side of a million": (
        _with(**{SIZE: {"height": 1_000_000, "width": 4}}),
        "/preprocessing/size/Rectangle/height: expected at most 2048, found 1000000",
    ),
    "a side of nothing": (_with(**{SIZE: {"height": 0, "width": 4}}), "expected at least 1"),
    "a shorter side alone": (
        _with(**{SIZE: {"shortest_edge": 5}}),
        "expected all pictures to become one size",
    ),
    "a crop of more than there is": (
        _with(
            preprocessing__do_center_crop=True, preprocessing__crop_size={"height": 6, "width": 6}
        ),
        "expected a crop_size within the size, found [6, 6]",
    ),
    "other pictures than the graph": (
        _with(**{SIZE: {"height": HEIGHT, "width": WIDTH + 1}}),
        "look.onnx, input 'pixels': expected float32 [?, 3, 5, 7], found float32 [?, 3, 5, 6]",
    ),
    "deviations of nothing": (
        _with(preprocessing__image_std=[0.5, 0, 0.5]),
        "/preprocessing/image_std/1: expected other numbers than 0",
    ),
    "deviations of nearly nothing": (
        _with(preprocessing__image_std=[0.5, 1e-40, 0.5]),
        "/preprocessing/image_std/1: expected other numbers than 0",
    ),
    "means of two colours": (
        _with(preprocessing__image_mean=[0.5, 0.5]),
        "/preprocessing/image_mean: expected at least 3",
    ),
    "an endless mean": (_with(preprocessing__image_mean=[1e39, 0, 0]), "expected at most 1000000"),
    "other channels": (
        _with(preprocessing__channels="cmyk"),
        "/preprocessing/channels: expected 'rgb' or 'bgr', found 'cmyk'",
    ),
    "an unknown way to resample": (_with(preprocessing__resample=6), "expected at most 5"),
    "what is not known": (
        _with(preprocessing__do_solarize=True),
        "/preprocessing/do_solarize: unknown field",
    ),
    "a tokenizer elsewhere": (
        _with(pieces__file="../tokenizer.json"),
        "/pieces/file: expected a text like",
    ),
    "a tokenizer that is not there": (
        _with(pieces__file="other.json"),
        "expected a file other.json, found",
    ),
    "a graph for a tokenizer": (_with(pieces__file="step.onnx"), "names one file for two parts"),
    "logits of other pieces": (
        _with(pieces__size=9_999),
        "output 'scores': expected float32 [?, 9999]",
    ),
    "pieces without end": (_with(pieces__size=10**9), "/pieces/size: expected at most 300000"),
    "a start that is none": (
        _with(pieces__start=299_999),
        "prescore.json, pieces/start: expected the id of one of",
    ),
    "captions without end": (_with(pieces__longest=10**9), "expected at most 65536"),
    "pictures and features": (
        _with(feature_size=7, encoder=ENCODER),
        "or preprocessing and look/pixels, found feature_size, encoder, preprocessing and look/pix",
    ),
    "pictures without pixels": (
        _with(look={"file": "look.onnx", "features": "pixels"}),
        "found look/features and preprocessing",
    ),
    "pixels that become nothing": (_with(preprocessing=None), "found look/pixels"),
    "words and pieces": (
        _with(vocabulary=WORDS, tokenizer="blanks"),
        "expected vocabulary and tokenizer, or pieces, found vocabulary, tokenizer and pieces",
    ),
    "pieces and how words are told": (_with(tokenizer="blanks"), "found tokenizer and pieces"),
    "no tokens": (_with(pieces=None), "expected vocabulary and tokenizer, or pieces, found none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_manifest_that_does_not_fit_is_refused_with_its_place(name, changed, written):
    change, said = REFUSED[name]
    manifest = change(copy.deepcopy(json.loads((written / "prescore.json").read_text())))
    with pytest.raises(InvalidCheckpoint, match=re.escape(said)):
        _judged(changed(json.dumps(manifest)))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", '"0.5"', "null"])
def test_means_are_numbers(number, changed, written):
    text = (written / "prescore.json").read_text()
    means = f'"image_mean": [0.5, {number}, 0.5], "resample"'
    with pytest.raises(InvalidCheckpoint, match=r"^prescore\.json.*(expected|is not JSON)"):
        _judged(changed(text.replace('"resample"', means)))


def test_a_huge_tokenizer_is_refused_unread(changed, written):
    folder = changed((written / "prescore.json").read_text())
    (folder / "tokenizer.json").unlink()
    with (folder / "tokenizer.json").open("wb") as stream:
        stream.truncate(64_000_001)
    with pytest.raises(
        InvalidCheckpoint, match=r"tokenizer.json: 64,000,001 bytes, at most 64,000,000"
    ):
        _judged(folder)
