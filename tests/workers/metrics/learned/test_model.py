import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from helpers import learned_models
from service.contract.errors import MetricFailed
from workers.metrics.learned import nneval

PLACES = np.random.default_rng(0).uniform(-1, 1, (50, 3))  # scaled features


@pytest.fixture
def path(model, tmp_path):
    nneval.write_nneval(tmp_path / "model", model)
    return tmp_path / "model"


def test_what_is_written_is_read(model, path, tmp_path):
    found = nneval.read_nneval(path)
    for name in ("features", "recipes", "tokenizer", "about"):
        assert getattr(found, name) == getattr(model, name)
    np.testing.assert_array_equal(found.classifier(PLACES), model.classifier(PLACES))
    nneval.write_nneval(tmp_path / "again", found)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_model_is_named_by_its_bytes_and_equal_content_has_equal_bytes(model, path, tmp_path):
    nneval.write_nneval(
        tmp_path / "again", replace(model, about=dict(reversed(model.about.items())))
    )
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert nneval.read_nneval(path).name == f"nneval@{digest[:12]}"


CHANGES = {
    "a tokenizer of ptb, .*, found 'x'": lambda t, m: m.update(tokenizer="x"),
    "different features": lambda t, m: m.update(features='[["rouge_l", ""]]'),
    "from 2 features to 2 classes": lambda t, m: m.update(
        features=json.dumps(json.loads(m["features"])[:2])
    ),
    "found 'layers/0/other'": lambda t, m: t.update({"layers/0/other": np.zeros(2)}),
    "found 'scaling/x'": lambda t, m: t.update({"scaling/x": np.zeros(2)}),
    "found 'x', which": lambda t, m: t.update(x=np.zeros(2)),
    "to 2 classes, found .*, \\(4,\\)\\]$": lambda t, m: t.pop("layers/1/weights"),
    "to 2 classes, found": lambda t, m: t.update({"layers/1/biases": np.zeros(3)}),
    "layers/0/weights of float64, found int64": lambda t, m: t.update(
        {"layers/0/weights": np.zeros((3, 4), np.int64)}
    ),
    "finite numbers in layers/0/biases": lambda t, m: t["layers/0/biases"].fill(np.nan),
    "value of 3 features, found": lambda t, m: t.update({"scaling/low": np.zeros(4)}),
    "no lowest value above": lambda t, m: t["scaling/low"].fill(99.0),
    "the sorted keys": lambda t, m: t.update({"frequencies/keys": t["frequencies/keys"][::-1]}),
    "counts from 2 to 50 images, found 1": lambda t, m: t["frequencies/counts"].fill(1),
    "counts from 2 to 50 images, found 51": lambda t, m: t["frequencies/counts"].fill(51),
    "about": lambda t, m: m.pop("about"),
}


@pytest.mark.parametrize("complaint", CHANGES)
def test_a_file_that_contradicts_itself_is_refused_with_the_reason(path, complaint):
    learned_models.rewrite(path, CHANGES[complaint])
    with pytest.raises(MetricFailed, match=complaint):
        nneval.read_nneval(path)


def test_a_corpus_of_few_ngrams_is_read(tmp_path):
    """Hashes so far apart that their difference is no 64-bit number."""
    few = learned_models.by_chance([["a cat", "the cat"], ["a dog in the park"]])
    assert len(few.frequencies.keys) == 2
    nneval.write_nneval(tmp_path / "few", few)
    np.testing.assert_array_equal(
        nneval.read_nneval(tmp_path / "few").frequencies.keys, few.frequencies.keys
    )
