import os
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import interruptions
from helpers.builders import (
    KINDS,
    REPRESENTATIVES,
    TORCH_GRUS,
    agreeing_references,
    encoded,
    model,
    random_references,
    tensors,
)
from oracles import captioner as oracle
from service.contract.errors import CheckpointMismatch, RunCanceled, UnusableCheckpoint
from workers.inference import columns, scoring


def _case(architecture, cell, images=40, words=50, seed=0, **sizes):
    rng = np.random.default_rng(seed)
    arrays = tensors(architecture, cell, words=words, seed=seed, **sizes)
    features = rng.normal(size=(images, arrays["image.weight"].shape[0])).astype(np.float32)
    return arrays, features, random_references(images, words, rng)


@pytest.mark.parametrize(("embedding", "image"), [(None, None), (6, None), (6, 3)])
@pytest.mark.parametrize(("architecture", "cell"), [*KINDS, *TORCH_GRUS])
def test_columns_are_those_of_a_float64_forward_pass(architecture, cell, embedding, image):
    arrays, features, references = _case(
        architecture, cell, images=7, embedding=embedding, image=image
    )
    found = scoring.compute_columns(
        model(architecture, cell, arrays), features, encoded(references)
    )
    logp, rank, caption_offsets, image_offsets = oracle.columns(
        architecture, cell, arrays, features, references
    )
    np.testing.assert_allclose(found.logp, logp, atol=5e-6)
    np.testing.assert_array_equal(found.rank, rank)
    np.testing.assert_array_equal(found.caption_offsets, caption_offsets)
    np.testing.assert_array_equal(found.image_offsets, image_offsets)


@pytest.mark.long
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("architecture", "cell"), REPRESENTATIVES)
def test_rank_0_is_decided_as_in_float64(architecture, cell, precision):
    rng = np.random.default_rng(3)
    arrays = tensors(architecture, cell, words=300, scale=0.2)
    features = rng.normal(size=(30, 5)).astype(np.float32)
    references = agreeing_references(architecture, cell, arrays, features, rng)
    options = scoring.ScoringOptions(precision=precision)
    found = scoring.compute_columns(
        model(architecture, cell, arrays), features, encoded(references), options
    )
    _, rank, _, _ = oracle.columns(architecture, cell, arrays, features, references)
    assert (rank == 0).mean() > 0.3
    np.testing.assert_array_equal(found.rank == 0, rank == 0)
    np.testing.assert_array_equal(
        found.rank == 0, found.top_ids[:, 0] == encoded(references).tokens
    )


def test_words_that_tie_are_all_hits():
    arrays = tensors("init", "gru")
    arrays["output.weight"][:, 20:40] = arrays["output.weight"][:, 20:21]
    arrays["output.bias"][20:40] = 30.0
    references = [[[20, 25, 39], [30]], [[41, 20]]]
    features = np.ones((2, 5), np.float32)
    for precision in ("fp32", "bf16"):
        found = scoring.compute_columns(
            model("init", "gru", arrays),
            features,
            encoded(references),
            scoring.ScoringOptions(precision=precision),
        )
        tied = (encoded(references).tokens >= 20) & (encoded(references).tokens < 40)
        np.testing.assert_array_equal(found.rank == 0, tied)
        assert (found.top_ids[tied, 0] == 20).all()  # the lowest id of equals


def test_near_ties_are_settled_in_float64():
    """Two words whose logits differ by less than float32 can tell."""
    arrays = tensors("init", "gru", words=10, scale=0.3)
    arrays["output.weight"][:, 5] = arrays["output.weight"][:, 4]
    arrays["output.bias"][4] = np.float32(20.0)
    arrays["output.bias"][5] = np.nextafter(np.float32(20.0), np.float32(21.0))
    references = [[[4], [5]]]
    features = np.ones((1, 5), np.float32)
    found = scoring.compute_columns(model("init", "gru", arrays), features, encoded(references))
    _, rank, _, _ = oracle.columns("init", "gru", arrays, features, references)
    np.testing.assert_array_equal(found.rank, rank)
    assert rank.tolist()[::2] == [1, 0]


def test_hardware_without_bf16_multiplies_the_same_rounded_numbers(monkeypatch):
    """As that with it does, but for the order in which float32 adds up; close to float32's."""
    arrays, features, references = _case("merge", "lstm", words=500)
    captioner, options = model("merge", "lstm", arrays), scoring.ScoringOptions("bf16")
    here = scoring.compute_columns(captioner, features, encoded(references), options)
    monkeypatch.setattr(scoring, "supports_bf16", lambda device: False)
    there = scoring.compute_columns(captioner, features, encoded(references), options)
    exact = scoring.compute_columns(captioner, features, encoded(references))
    apart = np.abs(here.logp - exact.logp).max()
    assert 0 < apart < 0.05
    assert np.abs(here.logp - there.logp).max() < 0.05 * apart


_OF_AN_OLD_PROCESSOR = """
import sys
sys.path[:0] = sys.argv[1:]
import test_scoring as tests
from workers.inference import devices
import torch
assert not devices.supports_bf16(torch.device("cpu"))
tests.test_rank_0_is_decided_as_in_float64("merge", "gru", "bf16")
"""


@pytest.mark.processes
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN's setting is for x86 alone"
)
def test_bf16_is_decided_as_in_float64_on_a_processor_that_does_not_know_it():
    """As oneDNN takes this one for where it is told so."""
    ours = Path(__file__).parents[2]
    folders = [Path(__file__).parent, ours, ours / "helpers", ours.parent]
    subprocess.run(
        [sys.executable, "-c", _OF_AN_OLD_PROCESSOR, *map(str, folders)],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        check=True,
        timeout=120,
    )


@pytest.mark.long
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    "blocks", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4))]
)
def test_columns_are_bit_equal_however_they_are_sharded(blocks):
    arrays, features, references = _case("par", "lstm", images=500, words=400, size=64)
    captioner = model("par", "lstm", arrays)
    everything = encoded(references)
    whole = scoring.compute_columns(captioner, features, everything)
    starts = range(0, 500, blocks * scoring.BLOCK_IMAGES)
    parts = [
        scoring.compute_columns(captioner, features[start:stop], everything.part(start, stop))
        for start, stop in pairwise([*starts, 500])
    ]
    joined = columns.concatenate_columns(parts)
    for name in ("logp", "rank", "caption_offsets", "image_offsets", "top_ids", "top_logp"):
        assert getattr(joined, name).tobytes() == getattr(whole, name).tobytes(), name


def test_entropy_and_the_models_own_first_words_come_when_asked():
    arrays, features, references = _case("init", "gru", images=3)
    captioner = model("init", "gru", arrays)
    found = scoring.compute_columns(
        captioner, features, encoded(references), scoring.ScoringOptions(top=4, entropy=True)
    )
    place = 0
    for row, captions in zip(features, references, strict=True):
        for words in captions:
            for logits in oracle.forward("init", "gru", arrays, row, words):
                logp = logits - np.logaddexp.reduce(logits)
                order = np.argsort(-logp)[:4]
                np.testing.assert_array_equal(found.top_ids[place], order)
                np.testing.assert_allclose(found.top_logp[place], logp[order], atol=1e-5)
                np.testing.assert_allclose(
                    found.entropy[place], -(np.exp(logp) * logp).sum(), atol=1e-4
                )
                place += 1


def test_no_more_logits_are_alive_than_promised(monkeypatch):
    arrays, features, references = _case("init", "gru", images=300, words=5000)
    captioner = model("init", "gru", arrays)
    largest = 0
    real = captioner.output

    def spy(hidden: torch.Tensor) -> torch.Tensor:
        nonlocal largest
        rows = real(hidden)
        largest = max(largest, rows.numel() * rows.element_size())
        return rows

    spy.weight, spy.bias = real.weight, real.bias
    monkeypatch.setattr(captioner, "output", spy)
    scoring.compute_columns(captioner, features, encoded(references))
    assert 0 < largest <= 10_000_000  # and as much again for scratch


def test_progress_is_told_after_every_block_and_may_end_it():
    arrays, features, references = _case("init", "gru", images=300)
    captioner = model("init", "gru", arrays)
    told: list[tuple[int, int]] = []
    scoring.compute_columns(
        captioner, features, encoded(references), progress=lambda *at: told.append(at)
    )
    assert told == [(128, 300), (256, 300), (300, 300)]
    with pytest.raises(RunCanceled, match="128 of 300"):
        scoring.compute_columns(
            captioner, features, encoded(references), progress=interruptions.ends
        )


@pytest.mark.parametrize(
    ("shape", "references", "told"),
    [
        ((1, 6), [[[2]]], r"size 5, the dataset's have shape \[1, 6\]"),
        ((1, 5), [[[2]], [[3]]], "each of 2 images, found 1"),
        ((1, 5), [[[50]]], "word id 50, the vocabulary has 50"),
    ],
)
def test_what_does_not_belong_to_the_model_is_refused(shape, references, told):
    captioner = model("init", "gru", tensors("init", "gru"))
    with pytest.raises(CheckpointMismatch, match=told):
        scoring.compute_columns(captioner, np.ones(shape, np.float32), encoded(references))


def test_weights_too_large_for_float32_fail_the_run():
    arrays = tensors("init", "gru")
    arrays["output.weight"] = np.full_like(arrays["output.weight"], 3e38)
    with pytest.raises(UnusableCheckpoint, match="too large"):
        scoring.compute_columns(
            model("init", "gru", arrays), np.ones((1, 5), "f4"), encoded([[[2]]])
        )


def test_no_images_give_empty_columns():
    captioner = model("init", "gru", tensors("init", "gru"))
    found = scoring.compute_columns(captioner, np.ones((0, 5), np.float32), encoded([]))
    assert len(found.logp) == 0
    assert found.top_ids.shape == (0, 1)
