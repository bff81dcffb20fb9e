"""Captioners that look at places of an image, beside the definitions in oracles/attention.py."""

import numpy as np
import pytest
import torch

from helpers import attending_models as small
from helpers.builders import encoded, random_references
from oracles import attention as oracle
from workers.inference import decoding, scoring
from workers.inference.captioners import ARCHITECTURES, attention
from workers.inference.packing import pack_captions


def _columns(of, tensors, rows, references):
    """The log-probability and the rank of every reference word and END, by the definition."""
    logp, rank = [], []
    for row, captions in zip(rows, references, strict=True):
        for words in captions:
            logits = oracle.forward(
                of.architecture, tensors, small.there(row), words, small.HEADS, _options(of)
            )
            targets = [*words, oracle.END]
            total = np.logaddexp.reduce(logits, axis=1)
            own = logits[np.arange(len(targets)), targets]
            logp.extend(own - total)
            rank.extend((logits > own[:, None]).sum(axis=1))
    return np.array(logp), np.array(rank)


def _options(of):
    return of.config.model_dump(exclude_defaults=True)


@pytest.fixture(params=[*small.NAMES, *(f"{name} with options" for name in small.NAMES)])
def of(request):
    name, *others = request.param.split()
    return small.description(name, **(small.OPTIONS[name] if others else {}))


@pytest.fixture(params=small.NAMES)
def of_usual_options(request):
    return small.description(request.param)


@pytest.mark.parametrize("counts", [[1], small.REGIONS], ids=len)
def test_columns_are_those_of_the_definition(of, counts):
    """One image, and seven: without any region, and with one."""
    tensors, rows = small.arrays(of), small.regions(counts)
    references = random_references(len(counts), small.WORDS, np.random.default_rng(2), longest=6)
    found = scoring.compute_columns(small.model(of, tensors), rows, encoded(references))
    logp, rank = _columns(of, tensors, rows, references)
    np.testing.assert_allclose(found.logp, logp, atol=1e-5)
    np.testing.assert_array_equal(found.rank, rank)


def test_captions_are_those_of_a_search_that_begins_anew_at_each_word(of_usual_options):
    of = of_usual_options
    tensors, rows = small.arrays(of, scale=0.8), small.regions(small.REGIONS)
    options = decoding.DecodingOptions(beam=3, min_words=2, max_words=6)
    found = decoding.decode_captions(small.model(of, tensors), rows, options)
    for row, caption in zip(rows, found, strict=True):
        words, logp = oracle.beam(
            of.architecture, tensors, small.there(row), 3, 2, 6, small.HEADS, _options(of)
        )
        assert list(caption.words) == words
        assert caption.logp == pytest.approx(logp, abs=1e-5)


def test_captions_are_the_same_however_few_images_fit_into_memory(monkeypatch, of_usual_options):
    """Blocks of three images, two of which fit; a part of a search is whole blocks."""
    monkeypatch.setattr(decoding, "size_decoding_block", lambda beam, words: 3)
    of, options = of_usual_options, decoding.DecodingOptions(max_words=8)
    model, rows = small.model(of, small.arrays(of, scale=0.8)), small.regions(small.REGIONS)
    whole = decoding.decode_captions(model, rows, options)
    monkeypatch.setattr(type(model), "together", 2)
    parts = decoding.decode_captions(model, rows, options)
    assert [each.words for each in parts] == [each.words for each in whole]


@pytest.mark.parametrize("together", [4, 128])
def test_ranks_of_near_ties_are_decided_in_float64(monkeypatch, of_usual_options, together):
    """Of two words whose logits differ by less than float32 tells; one image after the other, and
    all at once.
    """
    of = of_usual_options
    monkeypatch.setattr(ARCHITECTURES[of.architecture], "together", together)
    tensors, rows = small.arrays(of), small.regions(small.REGIONS)
    captions = [[[3, 4, 3, 4]]] * len(rows)
    noise = np.random.default_rng(0)
    twins = dict(tensors)
    for name in ("output.weight", "output.bias"):
        twins[name] = tensors[name].copy()
        twins[name][..., 3] = tensors[name][..., 4]
    twins["output.weight"][:, 3] += noise.normal(size=len(twins["output.weight"])) * 3e-7
    twins["output.bias"][3:5] += 40.0  # both are likelier than all others
    found = scoring.compute_columns(small.model(of, twins), rows, encoded(captions))
    _, rank = _columns(of, twins, rows, captions)
    np.testing.assert_array_equal(found.rank, rank)
    of_twins = rank.reshape(len(rows), 5)[:, :4]  # and END
    assert set(of_twins.ravel()) == {0, 1}


def test_a_model_in_training_gives_the_same_logits_and_every_tensor_a_gradient(of):
    frozen = small.model(of, small.arrays(of))
    trained = {name: tensor.clone().requires_grad_() for name, tensor in frozen.tensors.items()}
    model = type(frozen)(of, trained)
    rows = torch.from_numpy(small.regions([3, 0, 1]))
    packed = pack_captions(encoded([[[3, 4], []], [[5]], [[2]]]), np.arange(4), torch.device("cpu"))
    found = model.output(model.hidden(model.look(rows), packed))
    found.square().sum().backward()
    grads = {name: tensor.grad for name, tensor in trained.items()}
    assert all(grad is not None and grad.isfinite().all() for grad in grads.values())
    assert [name for name, grad in grads.items() if not grad.any()] == []
    expected = frozen.output(frozen.hidden(frozen.look(rows), packed))
    torch.testing.assert_close(found.detach(), expected)


@pytest.mark.parametrize("chunk", [1, 300])
def test_how_many_images_are_looked_at_together_changes_nothing(monkeypatch, chunk):
    of = small.description("soft_attention")
    model, rows = small.model(of, small.arrays(of)), small.regions(small.REGIONS)
    references = encoded(random_references(len(rows), small.WORDS, np.random.default_rng(6)))
    whole = scoring.compute_columns(model, rows, references)
    monkeypatch.setitem(attention._CHUNK_BYTES, "cpu", chunk)
    parts = scoring.compute_columns(model, rows, references)
    np.testing.assert_allclose(parts.logp, whole.logp, atol=2e-6)
