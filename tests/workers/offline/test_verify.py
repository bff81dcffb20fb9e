"""A checkpoint against numbers of other code: the page's own reader, which needs numpy alone."""

import json
import runpy

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from helpers import attending_models
from helpers.builders import ENCODER, KINDS, model, tensors
from helpers.documents import ROOT
from workers.cli.verify import verify
from workers.inference import checkpoints, features

COMMAND = typer.Typer()
COMMAND.command()(verify)
READER = runpy.run_path(str(ROOT / "deploy/guide/read_checkpoint.py"))
WORDS = [["w2", "w7", "w3"], [], ["w5", "nobody knows it", "w9", "w9"]]


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(len(WORDS), 5)).astype(np.float32)


def _changed(captioner, normalize):
    config = captioner.description.config.model_copy(update={"normalize": normalize})
    description = captioner.description.__class__(
        **{**vars(captioner.description), "config": config}
    )
    return type(captioner)(description, captioner.tensors)


def _expected(path, rows):
    """What the reader computes."""
    metadata, arrays = READER["read"](path)
    words = json.loads(metadata["vocabulary"])
    return [
        {
            "features": row.tolist(),
            "words": caption,
            "logp": READER["logp"](
                metadata, arrays, row, [words.index(w) if w in words else 1 for w in caption]
            ),
        }
        for row, caption in zip(rows, WORDS, strict=True)
    ]


def _verify(path, expected, *more):
    told = path.with_suffix(".json")
    told.write_text(json.dumps(expected))
    return CliRunner().invoke(COMMAND, [str(path), "--logp", str(told), *more])


def _agree(path, rows):
    """What the reader computes, and what we do."""
    expected = _expected(path, rows)
    found = _verify(path, expected, "--json")
    assert found.exit_code == 0, found.output
    ours = json.loads(found.output)["logp"]
    for example, here in zip(expected, ours, strict=True):
        assert here == pytest.approx(example["logp"], abs=2e-5)


@pytest.mark.parametrize(
    ("architecture", "cell", "embedding", "normalize", "dtype"),
    [
        *((*kind, None, "l2", torch.float32) for kind in KINDS),
        ("pre", "torch_gru", 6, "none", torch.float16),
        ("par", "lstm", 6, "l2", torch.bfloat16),
    ],
)
def test_the_pages_reader_computes_what_we_compute(
    tmp_path, rows, architecture, cell, embedding, normalize, dtype
):
    path = tmp_path / "model.safetensors"
    arrays = tensors(architecture, cell, embedding=embedding)
    captioner = _changed(model(architecture, cell, arrays), normalize)
    checkpoints.write_checkpoint(path, captioner, dtype)
    _agree(path, rows)


@pytest.mark.parametrize(("options", "normalize"), [(False, "l2"), (True, "none")])
@pytest.mark.parametrize("architecture", attending_models.NAMES)
def test_the_pages_reader_computes_what_we_compute_of_places(
    tmp_path, architecture, normalize, options
):
    """Of three places, of one and of none."""
    path = tmp_path / "model.safetensors"
    more = attending_models.OPTIONS[architecture] if options else {}
    of = attending_models.description(architecture, normalize=normalize, **more)
    checkpoints.write_checkpoint(path, attending_models.model(of, attending_models.arrays(of)))
    places = attending_models.regions([3, 3, 3])
    _agree(path, [row[:n] for row, n in zip(places, (3, 1, 0), strict=True)])


def test_places_of_another_size_are_refused_with_the_example(tmp_path):
    path = tmp_path / "model.safetensors"
    of = attending_models.description("soft_attention")
    checkpoints.write_checkpoint(path, attending_models.model(of, attending_models.arrays(of)))
    for wrong in ([1.0] * 5, [[1.0] * 4]):
        found = _verify(path, [{"features": wrong, "words": [], "logp": [-1.0]}])
        assert found.exit_code == 2
        assert "example 0: expected a list of places with 5 features each" in found.output


def test_a_zero_vector_stays_zero(tmp_path):
    path = tmp_path / "model.safetensors"
    checkpoints.write_checkpoint(path, model("merge", "lstm", tensors("merge", "lstm")))
    assert _verify(path, _expected(path, np.zeros((len(WORDS), 5)))).exit_code == 0


def _swapped(arrays, name, order):
    parts = np.split(arrays[name], len(order), axis=-1)
    return {**arrays, name: np.concatenate([parts[place] for place in order], axis=-1)}


def _gates(order):
    return lambda arrays: _swapped(_swapped(arrays, "gates.weight", order), "gates.bias", order)


def _state_first(arrays):
    size = arrays["image.weight"].shape[1]
    names = [name for name in ("gates.weight", "candidate.weight") if name in arrays]
    rolled = {name: np.concatenate([arrays[name][-size:], arrays[name][:-size]]) for name in names}
    return {**arrays, **rolled}


@pytest.mark.parametrize(
    ("cell", "wrong", "normalize", "remedy"),
    [
        ("gru", dict, "none", '"normalize": "l2" in its config'),
        ("gru", _gates([1, 0]), "l2", "the gates in the order reset, update"),
        ("gru", _state_first, "l2", "the rows of the input before those of the state"),
        ("lstm", _gates([0, 1, 3, 2]), "l2", "they seem to be input, forget, output, candidate"),
        ("lstm", _gates([1, 2, 3, 0]), "none", "they seem to be forget, candidate, output, input"),
    ],
)
def test_it_says_what_a_conversion_got_wrong(tmp_path, rows, cell, wrong, normalize, remedy):
    right, path = tmp_path / "right.safetensors", tmp_path / "model.safetensors"
    arrays = tensors("par", cell)
    checkpoints.write_checkpoint(right, model("par", cell, arrays))
    checkpoints.write_checkpoint(path, _changed(model("par", cell, wrong(arrays)), normalize))
    found = _verify(path, _expected(right, rows))
    assert found.exit_code == 1
    assert "They do not agree: 10 log-probabilities are at most" in found.output
    assert remedy in found.output
    assert ('"normalize": "l2"' in found.output) == (normalize == "none")


def test_what_cannot_be_explained_is_shown(tmp_path, rows):
    path = tmp_path / "model.safetensors"
    checkpoints.write_checkpoint(path, model("init", "gru", tensors("init", "gru")))
    expected = _expected(path, rows)
    expected[0]["logp"][1] -= 0.5
    found = _verify(path, expected)
    assert found.exit_code == 1
    assert "at most 0.5 apart" in found.output
    assert "No other order" in found.output
    assert "'w7'" in found.output


def test_images_of_a_bundle(tmp_path, rows):
    path, bundle = tmp_path / "model.safetensors", tmp_path / "bundle"
    bundle.mkdir()
    checkpoints.write_checkpoint(path, model("pre", "lstm", tensors("pre", "lstm")))
    features.write_features(bundle / "features.safetensors", ["a", "b", "c"], rows, ENCODER)
    expected = _expected(path, rows)
    for example, name in zip(expected, "abc", strict=True):
        del example["features"]
        example["image"] = name
    assert _verify(path, expected, "--dataset", str(bundle)).exit_code == 0
    assert "expected 'features'" in _verify(path, expected).output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"logp": [-1.0]}, "/0/logp: expected 4 numbers"),
        ({"logp": "a"}, "/0/logp: expected a list, found 'a'"),
        ({"features": [1.0]}, "example 0: expected 5 features"),
        ({"more": 1}, "/0/more: unknown field"),
    ],
)
def test_wrong_examples_are_refused(tmp_path, rows, change, told):
    path = tmp_path / "model.safetensors"
    checkpoints.write_checkpoint(path, model("pre", "lstm", tensors("pre", "lstm")))
    expected = _expected(path, rows)
    expected[0].update(change)
    found = _verify(path, expected)
    assert found.exit_code == 2
    assert told in found.output
