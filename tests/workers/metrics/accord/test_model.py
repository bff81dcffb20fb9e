"""A file of a model is a stranger's: what contradicts itself in it is refused with the reason."""

import json

import numpy as np
import pytest

from helpers import learned_models
from service.contract.errors import MetricFailed
from workers.metrics import model_files
from workers.metrics.accord import model


@pytest.fixture
def path(tmp_path):
    model.write_accord(tmp_path / "model", learned_models.of_accord())
    return tmp_path / "model"


def _first(name, value):
    def change(tensors, _):
        tensors[name] = tensors[name].copy()
        tensors[name].flat[0] = value

    return change


CHANGES = {
    "a tokenizer of ptb, .*, found 'x'": lambda t, m: m.update(tokenizer="x"),
    "stems of english, written, found 'x'": lambda t, m: m.update(stems="x"),
    "finite numbers in weights": _first("weights", np.nan),
    "finite numbers in vectors": _first("vectors", np.inf),
    "not longer than 1": _first("vectors", 3.0),
    "8 weights, none of them negative": lambda t, m: t.update(weights=-t["weights"]),
    "weights of float64, found float16": lambda t, m: t.update(weights=np.ones(8, np.float16)),
    "tell all features from none, found weights of 0 together": lambda t, m: t.update(
        weights=np.zeros(8)
    ),
    "tell all features from none": lambda t, m: t.update(middle=np.zeros(2)),
    "found 'x', which": lambda t, m: t.update(x=np.zeros(2)),
    "words with a count each": lambda t, m: t.update(words=t["words"][:-9]),
    "in 1 to 5000 images, found 0": _first("images", 0),
    "in 1 to 5000 images, found .* 5001": _first("images", 5001),
    "a vector for each": lambda t, m: t.update(vectors=t["vectors"][:-1]),
    "the sorted keys": lambda t, m: t.update({"frequencies/keys": t["frequencies/keys"][::-1]}),
    "'middle'": lambda t, m: t.pop("middle"),
    "'about'": lambda t, m: m.pop("about"),
    "an object in about": lambda t, m: m.update(about="[]"),
    "the features": lambda t, m: m.update(features=json.dumps(["precision"])),
}


@pytest.mark.parametrize("complaint", CHANGES)
def test_a_file_that_contradicts_itself_is_refused_with_the_reason(path, complaint):
    learned_models.rewrite(path, CHANGES[complaint])
    with pytest.raises(MetricFailed, match=f"model is not a model of accord: .*{complaint}"):
        model.read_accord(path)


def test_a_file_of_many_bytes_is_refused_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr(model_files, "MOST_BYTES", 1000)
    with pytest.raises(MetricFailed, match="expected at most 1000 bytes, found"):
        model.read_accord(path)


def test_the_shipped_file_is_written_again_with_the_same_bytes(tmp_path):
    model.write_accord(tmp_path / "again", model.load_shipped_accord())
    assert (tmp_path / "again").read_bytes() == model.SHIPPED.read_bytes()
