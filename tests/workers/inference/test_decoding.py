import numpy as np
import pytest

from helpers import interruptions
from helpers.builders import REPRESENTATIVES, model, tensors
from oracles import captioner as oracle
from service.contract.errors import CheckpointMismatch, RunCanceled, UnusableCheckpoint
from workers.inference import decoding
from workers.inference.decoding import DecodingOptions

SETTINGS = [
    DecodingOptions(beam=1, min_words=0, max_words=8, unk=True),
    DecodingOptions(beam=1, min_words=4, max_words=12),
    DecodingOptions(beam=3, min_words=4, max_words=12),
    DecodingOptions(beam=15, min_words=0, max_words=4, unk=True),  # wider than the vocabulary
    DecodingOptions(beam=5, min_words=4, max_words=50),
]
MANY, FEW = 6, 2  # images; for long captions, which the plain search takes .1 s each to find


@pytest.mark.long
@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize(("architecture", "cell"), REPRESENTATIVES)
def test_captions_are_those_of_the_plain_search(architecture, cell, options):
    rng = np.random.default_rng(2)
    arrays = tensors(architecture, cell, words=12, scale=1.0, seed=11)
    features = rng.normal(size=(MANY if options.max_words < 50 else FEW, 5)).astype(np.float32)
    found = decoding.decode_captions(model(architecture, cell, arrays), features, options)
    for row, caption in zip(features, found, strict=True):
        words, logp = oracle.beam(
            architecture,
            cell,
            arrays,
            row,
            options.beam,
            options.min_words,
            options.max_words,
            options.unk,
        )
        assert list(caption.words) == words
        assert caption.logp == pytest.approx(logp, abs=1e-4)
        if options.beam == 1:
            assert words == oracle.greedy(
                architecture, cell, arrays, row, options.min_words, options.max_words, options.unk
            )


def test_length_normalisation_compares_means_and_is_off_by_default():
    assert DecodingOptions().length_power == 0
    arrays = tensors("init", "gru", words=12, scale=1.0, seed=3)
    arrays["output.bias"][0] = 2.0  # END is likely, so a short caption is the most probable one
    features = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    captioner = model("init", "gru", arrays)
    plain = decoding.decode_captions(
        captioner, features, DecodingOptions(beam=4, min_words=0, max_words=20)
    )
    normalised = decoding.decode_captions(
        captioner, features, DecodingOptions(beam=4, min_words=0, max_words=20, length_power=1.0)
    )

    def mean(caption):
        return caption.logp / (len(caption.words) + (len(caption.words) < 20))

    assert sum(map(mean, normalised)) > sum(map(mean, plain)) + 1
    assert sum(caption.logp for caption in normalised) < sum(caption.logp for caption in plain)


def test_where_no_word_is_allowed_the_caption_is_empty():
    arrays = tensors("init", "gru", words=2)
    found = decoding.decode_captions(
        model("init", "gru", arrays), np.ones((2, 5), "f4"), DecodingOptions()
    )
    assert [caption.words for caption in found] == [(), ()]


def test_progress_is_told_after_every_block_and_may_end_it():
    captioner = model("init", "gru", tensors("init", "gru"))
    features = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    told: list[tuple[int, int]] = []
    decoding.decode_captions(
        captioner, features, DecodingOptions(beam=1), progress=lambda *at: told.append(at)
    )
    assert told == [(128, 200), (200, 200)]
    with pytest.raises(RunCanceled, match="128 of 200"):
        decoding.decode_captions(captioner, features, DecodingOptions(beam=1), interruptions.ends)


@pytest.mark.parametrize("wrong", [{"beam": 0}, {"min_words": 5, "max_words": 4}, {"max_words": 0}])
def test_settings_that_cannot_be_met_are_refused(wrong):
    with pytest.raises(ValueError, match="expected beam"):
        DecodingOptions(**{"min_words": 0, **wrong})


def test_features_of_another_size_are_refused_with_both_sizes():
    captioner = model("init", "gru", tensors("init", "gru"))
    with pytest.raises(CheckpointMismatch, match=r"size 5, the dataset's have shape \[1, 6\]"):
        decoding.decode_captions(captioner, np.ones((1, 6), np.float32))


def test_weights_too_large_for_float32_fail_the_run():
    arrays = tensors("init", "gru")
    arrays["output.weight"] = np.full_like(arrays["output.weight"], 3e38)
    with pytest.raises(UnusableCheckpoint):
        decoding.decode_captions(model("init", "gru", arrays), np.ones((1, 5), np.float32))
