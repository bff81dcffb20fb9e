"""ONNX captioners that look at pictures and write pieces of words. Oracles: the small network's
definition, Pillow, and a plain loop.
"""

import numpy as np
import pytest
import torch
from PIL import Image

from helpers import onnx_bundle_files as files
from helpers import plain_search, synthetic_pictures, tokenizer_files
from service.contract.errors import CheckpointMismatch
from workers.inference import columns, decoding, prefix, scoring

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_sandbox")]

HEIGHT, WIDTH = 5, 6
PREPROCESSING = {
    "size": {"height": 8, "width": 6},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": HEIGHT, "width": WIDTH},
    "image_mean": [0.3, 0.4, 0.5],
    "image_std": [0.2, 0.25, 0.5],
}


@pytest.fixture
def made(tmp_path, opened):
    """Writes and opens a bundle."""

    def make(kind="bytes", channels="rgb", **said):
        preprocessing = {**PREPROCESSING, "channels": channels}
        tokenizer = tokenizer_files.KINDS[kind]()
        shape = (3, HEIGHT, WIDTH)
        weights = files.of_pixels(tmp_path / "bundle", tokenizer, preprocessing, shape, **said)
        return opened(tmp_path / "bundle"), weights

    return make


def _rows(pictures, channels="rgb"):
    """By Pillow: stretched to 6 x 8, the middle 6 x 5, normalised, channels first."""
    found = []
    for picture in pictures:
        small = Image.fromarray(picture).resize((6, 8), Image.Resampling.BICUBIC)
        pixels = np.asarray(small.crop((0, 1, 6, 6)), np.float64) / 255
        row = (pixels - PREPROCESSING["image_mean"]) / PREPROCESSING["image_std"]
        found.append(row[:, :, ::-1] if channels == "bgr" else row)
    return np.stack(found).transpose(0, 3, 1, 2).reshape(len(found), -1)


@pytest.fixture
def dataset(tmp_path):
    """Pictures as a captioner takes them, read from a bundle."""

    def write(one, images):
        folder = tmp_path / f"pictures{images}"
        folder.mkdir()
        return one.inputs(folder, synthetic_pictures.write_dataset(folder, images))[:]

    return write


@pytest.mark.parametrize("channels", ["rgb", "bgr"])
def test_columns_are_the_definitions_of_each_piece_and_words_are_their_pieces(
    channels, made, dataset
):
    images = 20  # more than are looked at in one call
    one, weights = made(channels=channels)
    given = dataset(one, images)
    rows = _rows(synthetic_pictures.pictures(images), channels)
    encoded = one.tokens.encode(synthetic_pictures.sentences(images))
    found = scoring.compute_columns(one, given, encoded)
    logp, rank = [], []
    start = one.tokens.start
    for caption, image in enumerate(encoded.caption_images):
        targets = encoded.tokens[slice(*encoded.caption_offsets[caption : caption + 2])]
        table = files.definition(weights, rows[image], targets[:-1], start)
        own = table[range(len(targets)), targets]
        logp.append(own)
        rank.append((table > own[:, None]).sum(1))
    np.testing.assert_allclose(found.logp, np.concatenate(logp), atol=1e-4)
    np.testing.assert_array_equal(found.rank, np.concatenate(rank))
    words = columns.merge_word_pieces(found, encoded.word_offsets)
    starts = encoded.word_offsets[:-1]
    np.testing.assert_allclose(words.logp, np.add.reduceat(np.concatenate(logp), starts), atol=1e-3)
    np.testing.assert_array_equal(words.rank, np.maximum.reduceat(np.concatenate(rank), starts))
    walked = prefix.walk_prefixes(one, given, encoded)
    np.testing.assert_array_equal(encoded.whole_words(walked), prefix.read_prefixes(words))


@pytest.mark.parametrize("images", [1, 20])
def test_a_caption_is_what_a_plain_loop_writes(images, made, dataset):
    one, weights = made(kind="words")
    end = one.tokens.end
    options = decoding.DecodingOptions(beam=1, min_words=2, max_words=6)
    found = decoding.decode_captions(one, dataset(one, images), options)
    assert len(found) == images
    for row, caption in zip(_rows(synthetic_pictures.pictures(images)), found, strict=True):

        def logits(words, row=row):
            return files.definition(weights, row, words, end)[-1]

        ids = plain_search.greedy(logits, end, least=2, most=6)
        assert list(caption.words) == ids
        (text,) = one.tokens.tokenizer.decode_batch([ids], skip_special_tokens=True)
        assert decoding.detokenize_caption(one, caption) == text.strip()


def test_images_of_a_wide_search_are_captioned_once_and_as_they_are_alone(made, dataset):
    """Of so wide a search 12 are searched for at once: fewer than are looked at at once."""
    one, _ = made(longest=4)
    options = decoding.DecodingOptions(beam=10, min_words=0, max_words=160)
    given = dataset(one, 20)
    found = decoding.decode_captions(one, given, options)
    alone = [decoding.decode_captions(one, given[at : at + 1], options)[0] for at in range(20)]
    assert [each.words for each in found] == [each.words for each in alone]


def test_captions_end_where_the_network_reads_no_further(made, dataset):
    one, _ = made(longest=3)
    asked = decoding.DecodingOptions(beam=2, min_words=9, max_words=50)
    found = decoding.decode_captions(one, dataset(one, 2), asked)
    assert [len(each.words) for each in found] == [3, 3]
    with pytest.raises(CheckpointMismatch, match=r"has [0-9]+ pieces, the model reads at most 2"):
        one.tokens.encode([["a red circle on the table"]])


def test_what_was_left_off_is_no_part_of_what_is_looked_at_next(made, dataset, monkeypatch):
    one, _ = made()
    given = torch.tensor(dataset(one, 20))
    texts = one.tokens.encode(synthetic_pictures.sentences(20))
    expected = scoring.compute_columns(one, given.numpy(), texts).logp
    ready = [one.preparation.normalised(given[:16])]  # and not the other four
    with monkeypatch.context() as patch:
        patch.setattr(type(one.preparation), "normalised", lambda *_: ready.pop())
        with pytest.raises(IndexError):
            one.look(given)
    np.testing.assert_array_equal(scoring.compute_columns(one, given.numpy(), texts).logp, expected)
