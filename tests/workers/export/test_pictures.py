"""`prescore export` of captioners that look at pictures and write pieces of words. Oracle: the
library's own model, of which the bundle was made: its loss of each token, and what it writes
greedily, word by word.
"""

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import huggingface_folders as folders
import seen_pictures
from workers.export import bundle_writer
from workers.export.captioner import ExportedCaptioner
from workers.inference import decoding, scoring
from workers.inference.onnx import captioner
from workers.sandbox import confinement

pytestmark = [pytest.mark.processes, pytest.mark.slow]

POSITIONS = folders.POSITIONS


class _Look(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        seen = self.model.encoder(pixel_values=pixels).last_hidden_state
        return self.model.enc_to_dec_proj(seen), pixels.new_zeros(
            pixels.shape[0], 0, dtype=torch.long
        )


class _Score(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.decoder = model.decoder

    def forward(self, words, seen, read):  # noqa: ARG002  what `score` is given
        return self.decoder(input_ids=words, encoder_hidden_states=seen, use_cache=False).logits


class _Step(nn.Module):
    """Its state are the words before."""

    def __init__(self, model):
        super().__init__()
        self.score = _Score(model)

    def forward(self, words, seen, read):
        every = torch.cat([read, words[:, None]], 1)
        return self.score(every, seen, read)[:, -1], every


def described(saved, **more):
    model = saved.library
    given = {
        "look": _Look(model).eval(),
        "step": _Step(model).eval(),
        "score": _Score(model).eval(),
        "preprocessing": folders.processor(saved.kind).to_dict(),
        "tokenizer": transformers.PreTrainedTokenizerFast.from_pretrained(saved.folder),
        "start": "[SEP]",
        "end": "[SEP]",
        "longest": POSITIONS,
    }
    return ExportedCaptioner(**{**given, **more})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folders.make(tmp_path_factory.mktemp("m") / "model", "vit-gpt2", trained=True)


@pytest.fixture(scope="module")
def ours(saved, tmp_path_factory):
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("b") / "bundle"
    bundle = bundle_writer.write_bundle(folder, described(saved))
    assert [*bundle.graphs] == ["look", "step", "score"]
    one = captioner.read_onnx_captioner(folder)
    yield one
    one.close()


def _seen(saved, one, images, tmp_path):
    """Pictures as our captioner reads them of a dataset, and as the library prepares them."""
    names = seen_pictures.write_dataset(tmp_path, images)
    rows = list(seen_pictures.pictures(images))
    pixels = folders.processor(saved.kind)(rows, return_tensors="pt")["pixel_values"]
    return one.inputs(tmp_path, names), pixels


@pytest.mark.parametrize("images", [1, 7, 64])
def test_columns_are_the_librarys_loss_of_each_piece(images, saved, ours, tmp_path):
    inputs, pixels = _seen(saved, ours, images, tmp_path)
    encoded = ours.tokens.encode(seen_pictures.sentences(images))
    found = scoring.compute_columns(ours, inputs, encoded)
    logp, first = [], []
    for caption, image in enumerate(encoded.caption_images):
        ids = encoded.tokens[slice(*encoded.caption_offsets[caption : caption + 2])]
        targets = torch.from_numpy(ids)
        with torch.no_grad():
            logits = saved.library(
                pixel_values=pixels[image : image + 1],
                decoder_input_ids=torch.tensor([[saved.start, *ids[:-1]]]),
            ).logits[0]
        logp += (-nn.functional.cross_entropy(logits, targets, reduction="none")).tolist()
        first += (logits.argmax(1) == targets).tolist()
    np.testing.assert_allclose(found.logp, logp, atol=1e-4)
    np.testing.assert_array_equal(found.rank == 0, first)
    assert np.mean(first) > 0.5


@pytest.mark.parametrize("images", [1, 7, 64])
def test_a_greedy_caption_is_what_the_library_would_say(images, saved, ours, tmp_path):
    inputs, pixels = _seen(saved, ours, images, tmp_path)
    options = decoding.DecodingOptions(beam=1, min_words=0, max_words=12)
    found = decoding.decode_captions(ours, inputs, options)
    expected = saved.generated(pixels, num_beams=1, max_new_tokens=12)
    assert [list(caption.words) for caption in found] == expected
    assert len(set(map(tuple, expected))) > 1 or images == 1
