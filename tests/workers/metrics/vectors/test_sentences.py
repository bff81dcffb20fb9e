"""References as vectors of sentences: prepared once, in parts, written and read."""

from itertools import pairwise

import numpy as np
import pytest

import encoders
import ending
from oracles import sentences as oracle
from service.contract.errors import MetricFailed, RunCanceled
from workers.metrics.vectors import sentences, text_encoder

PEOPLE = [["the man runs", "a dog"], ["a dog"], ["", "a big red cat"], ["the man runs"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return encoders.make(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder):
    return text_encoder.read_encoder(folder)


def _by_image(prepared):
    spans = pairwise(prepared.images.tolist())
    return [prepared.vectors[prepared.sentences[start:stop]] for start, stop in spans]


def test_every_reference_of_an_image_has_its_vector(folder, model):
    reference = oracle.Model(folder)
    for found, texts in zip(_by_image(sentences.prepare(PEOPLE, model)), PEOPLE, strict=True):
        expected = reference.vectors(texts) * [[bool(text)] for text in texts]
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_a_sentence_is_embedded_once_however_often_it_stands_there(model):
    prepared = sentences.prepare(PEOPLE, model)
    assert len(prepared.vectors) == 4
    assert prepared.sentences.tolist() == [0, 1, 1, 2, 3, 0]
    assert prepared.images.tolist() == [0, 2, 3, 5, 6]


def test_references_embedded_in_parts_are_those_embedded_together(model):
    parts = [sentences.prepare(part, model) for part in (PEOPLE[:1], PEOPLE[1:])]
    joined, whole = sentences.join(parts), sentences.prepare(PEOPLE, model)
    for found, expected in zip(_by_image(joined), _by_image(whole), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_what_is_written_is_read(model, tmp_path):
    prepared = sentences.prepare(PEOPLE, model)
    for name in ("one", "again"):
        sentences.write(tmp_path / name, prepared)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()
    read = sentences.read(tmp_path / "one")
    assert read.model == prepared.model == f"{model.digest}/{encoders.LAYERS}"
    for name in ("vectors", "sentences", "images"):
        np.testing.assert_array_equal(getattr(read, name), getattr(prepared, name))


@pytest.mark.parametrize("content", [b"", b"{}", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 64])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "vectors").write_bytes(content)
    with pytest.raises(MetricFailed, match="vectors of references"):
        sentences.read(tmp_path / "vectors")


def test_an_image_without_references_is_refused(model):
    with pytest.raises(MetricFailed, match="image 1: expected at least one reference"):
        sentences.prepare([["a dog"], []], model)


def test_it_may_be_ended(model):
    with pytest.raises(RunCanceled):
        sentences.prepare(PEOPLE, model, progress=ending.ends)
