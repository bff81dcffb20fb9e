"""Oracle: the library itself, from the same folder: its logits, its `generate`, its processors."""

import shutil

import numpy as np
import pytest
import torch
import transformers

from helpers import huggingface_folders as folders
from helpers import synthetic_pictures
from helpers.huggingface_folders import KINDS
from service.contract.errors import CheckpointMismatch, UnusableDataset
from workers.inference import checkpoints, generation, prefix, scoring
from workers.inference.captioners import GenerationOptions
from workers.inference.huggingface import decoder_stack
from workers.inference.vocabulary import EncodedCaptions

IMAGES = 15
EACH = [
    *((kind, False) for kind in KINDS),
    ("vit-gpt2", True),
    *(pytest.param(kind, True, marks=pytest.mark.slow) for kind in KINDS if kind != "vit-gpt2"),
]


def _by_library(saved, pixels, encoded):
    """Log-probability and rank of each token, a caption at a time."""
    logp, rank = [], []
    for caption, image in enumerate(encoded.caption_images):
        tokens = torch.from_numpy(
            encoded.tokens[slice(*encoded.caption_offsets[caption : caption + 2])]
        )
        read = torch.tensor([[encoded.start, *tokens[:-1]]])
        with torch.no_grad():
            logits = saved.logits(pixels[image : image + 1], read)[0]
        own = logits.gather(1, tokens[:, None])
        logp.append(torch.log_softmax(logits, 1).gather(1, tokens[:, None])[:, 0])
        rank.append((logits > own + 1e-4).sum(1))
    return torch.cat(logp).numpy(), torch.cat(rank).numpy()


@pytest.mark.long
@pytest.mark.parametrize(
    "images", [IMAGES, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 7, 64))]
)
@pytest.mark.parametrize(("kind", "trained"), EACH)
def test_columns_are_the_librarys_loss_of_each_token(kind, trained, images, saved, pixels):
    """Of nine references of the first image, and of those of the others."""
    one = saved(kind, trained=trained)
    model, inputs = folders.opened(one, images)
    first, *others = synthetic_pictures.sentences(images)
    references = model.tokens.encode([(first * 9)[:9], *others])
    found = scoring.compute_columns(model, inputs, references)
    logp, rank = _by_library(one, pixels(kind, images), references)
    np.testing.assert_allclose(found.logp, logp, atol=1e-4)
    np.testing.assert_array_equal(found.rank == 0, rank == 0)
    assert not trained or (found.rank == 0).mean() > 0.5
    walked = prefix.walk_prefixes(model, inputs, references)
    for start, end, length in zip(
        references.caption_offsets[:-1], references.caption_offsets[1:], walked, strict=True
    ):
        hits = (rank[start:end] == 0).tolist()
        assert length == (hits.index(False) if False in hits else len(hits))


@pytest.mark.long
@pytest.mark.parametrize(
    "images", [7, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 64))]
)
@pytest.mark.parametrize(("kind", "trained"), EACH)
def test_captions_are_those_of_generate(kind, trained, images, saved, pixels):
    one = saved(kind, trained=trained)
    model, inputs = folders.opened(one, images)
    seen = pixels(kind, images)
    for beams in (1, 3):
        found = generation.generate_captions(model, inputs, GenerationOptions(beams=beams, most=14))
        expected = one.generated(seen, num_beams=beams, max_new_tokens=14)
        assert [list(caption.words) for caption in found] == expected


OURS = {  # names of ours for those of `generate`
    "num_beams": "beams",
    "min_length": "least",
    "suppress_tokens": "never",
    "begin_suppress_tokens": "never_first",
    "forced_bos_token_id": "forced_first",
    "forced_eos_token_id": "forced_last",
    "no_repeat_ngram_size": "no_repeat_ngram",
}


def _options(**theirs):
    """The options that mean the same; START counts as a token where tokens are counted anew."""
    if "min_new_tokens" in theirs:
        theirs["min_length"] = theirs.pop("min_new_tokens") + 1
    return GenerationOptions(**{OURS.get(name, name): value for name, value in theirs.items()})


SEARCHES = [
    {"num_beams": 2, "early_stopping": True, "length_penalty": 2.0},
    {"num_beams": 3, "early_stopping": "never", "length_penalty": 2.0},
    {"num_beams": 2, "length_penalty": 0.0},
    {"num_beams": 3, "min_new_tokens": 9},
    {"num_beams": 1, "min_length": 8},
    {"num_beams": 3, "suppress_tokens": [9, 21], "begin_suppress_tokens": [4, 5]},
    {"num_beams": 2, "forced_bos_token_id": 7, "forced_eos_token_id": 2},
    {"forced_eos_token_id": 2, "forced_bos_token_id": 7},
]


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["vit-gpt2", pytest.param("deit-bert", marks=pytest.mark.slow)])
def test_settings_of_a_search_mean_what_they_mean_to_generate(kind, search, saved, pixels):
    one = saved(kind, trained=False)
    model, inputs = folders.opened(one, IMAGES)
    found = generation.generate_captions(model, inputs, _options(most=12, **search))
    expected = one.generated(pixels(kind, IMAGES), max_new_tokens=12, **search)
    assert [list(caption.words) for caption in found] == expected


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["vit-gpt2", "git"])
def test_rows_may_be_chosen_in_any_order_and_number_while_words_are_read(kind, saved, pixels):
    one = saved(kind, trained=False)
    model, inputs = folders.opened(one, 5)
    images = torch.arange(5)
    read = torch.full((5, 1), one.start)
    state = model.begin(model.look(torch.from_numpy(inputs)))
    rng = np.random.default_rng(0)
    chosen = {2: [4, 1, 1, 3, 0, 4, 4], 3: [6, 2, 0, 1, 5], 5: [0, 1, 2, 3], 18: [3, 0, 3], 19: [1]}
    for length in range(1, 22):
        hidden, state = model.step(state, read[:, -1])
        expected = one.logits(pixels(kind, 5)[images], read)[:, -1]
        torch.testing.assert_close(model.output(hidden), expected, atol=1e-4, rtol=1e-4)
        if length in chosen:
            rows = torch.tensor(chosen[length])
            state, read, images = model.select(state, rows), read[rows], images[rows]
        words = torch.from_numpy(rng.integers(3, 20, (len(read), 1)))
        read = torch.cat([read, words], dim=1)


RESTRAINTS = [
    {"no_repeat_ngram_size": 1},
    {"repetition_penalty": 0.5},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2, "min_length": 8},
]
PROCESSED = ("vit-gpt2", "deit-bert", "blip", "git", "beit-gpt2")  # each in its way


@pytest.mark.long
@pytest.mark.parametrize("restraint", RESTRAINTS)
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(
    "kind", ["vit-gpt2", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])]
)
def test_repetitions_are_restrained_as_by_generate(kind, beams, restraint, saved, pixels):
    one = saved(kind, trained=False)
    model, inputs = folders.opened(one, 7)
    plain, found = (
        generation.generate_captions(model, inputs, _options(num_beams=beams, most=14, **more))
        for more in ({}, restraint)
    )
    expected = one.generated(pixels(kind, 7), num_beams=beams, max_new_tokens=14, **restraint)
    assert [list(caption.words) for caption in found] == expected
    assert [caption.words for caption in plain] != [caption.words for caption in found]


def test_an_opened_captioner_searches_as_its_folder_says(saved, tmp_path, pixels):
    one = saved("vit-gpt2", trained=False)
    copy = shutil.copytree(one.folder, tmp_path / "copy")
    how = {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3, "num_beams": 2, "max_length": 13}
    folders.change(copy, "generation_config.json", **how)
    _, inputs = folders.opened(one, 7)
    model = checkpoints.open_captioner(copy)
    found = generation.generate_captions(model, inputs, model.search)
    expected = one.generated(pixels("vit-gpt2", 7), **how)
    assert [list(caption.words) for caption in found] == expected


def test_a_captions_probability_is_that_of_its_tokens(saved):
    model, inputs = folders.opened(saved("vit-gpt2", trained=True), IMAGES)
    for beams, penalty in ((1, 1.0), (3, 1.0), (3, 0.0)):
        search = GenerationOptions(beams=beams, most=20, length_penalty=penalty)
        found = generation.generate_captions(model, inputs, search)
        ended = [[*caption.words, model.tokens.end] for caption in found]
        offsets = np.cumsum([0, *map(len, ended)])
        images = np.arange(len(ended) + 1)
        given = EncodedCaptions(np.concatenate(ended), offsets, images, model.tokens.start)
        known = scoring.compute_columns(model, inputs, given)
        counted = [min(len(tokens), 20) for tokens in ended]  # the 20th is the last one
        expected = [
            known.logp[at : at + count].sum()
            for at, count in zip(offsets[:-1], counted, strict=True)
        ]
        np.testing.assert_allclose([each.logp for each in found], expected, atol=1e-3)


@pytest.mark.parametrize("kind", PROCESSED)
def test_pictures_become_what_the_librarys_processor_makes_of_them(kind, saved, pixels, tmp_path):
    model = checkpoints.open_captioner(saved(kind, trained=False).folder, sandbox="off")
    names = synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(IMAGES, seed=3))
    inputs = model.inputs(tmp_path, names)
    assert len(inputs) == IMAGES
    some = np.array([7, 2])
    found = model.preparation.normalised(torch.from_numpy(inputs[some]))
    torch.testing.assert_close(found, pixels(kind, IMAGES)[some], atol=0, rtol=0)


def test_what_a_captioner_cannot_read_is_named(saved, tmp_path):
    """A picture that is not there, features, and a reference that is too long."""
    model = checkpoints.open_captioner(saved("git", trained=False).folder, sandbox="off")
    synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(1))
    with pytest.raises(UnusableDataset, match=r"1 image cannot be decoded: 'other\.png'"):
        model.inputs(tmp_path, ["0000.png", "other.png"])[:]
    with pytest.raises(CheckpointMismatch, match=r"expects pictures of shape \[32, 32, 3\]"):
        model.check(np.zeros((4, 2048), np.float32))
    with pytest.raises(CheckpointMismatch, match=r"'red red.*[0-9]{2} pieces.*at most 23"):
        model.tokens.encode([["red " * 30]])


@pytest.mark.parametrize("kind", ["vit-gpt2", "blip"])
def test_pieces_are_the_tokenizers(kind, saved):
    one = saved(kind, trained=False)
    model = checkpoints.open_captioner(one.folder)
    library = transformers.PreTrainedTokenizerFast.from_pretrained(one.folder)
    texts = ["a red  square ", "one, éx-tra\tcircle \U0001f600.", "", "red"]
    found = model.tokens.encode([texts[:1], texts[1:]])
    for caption, text in enumerate(texts):
        start, end = found.caption_offsets[caption : caption + 2]
        whole = " ".join(text.split())
        ids = library(whole, add_special_tokens=False)["input_ids"]
        assert found.tokens[start:end].tolist() == [*ids, one.end]
        assert model.tokens.text(ids) == library.decode(ids, skip_special_tokens=True).strip()


class _CountingLayer:
    def __init__(self):
        self.thought = []

    def own(self, x, _times):
        return x, x, x

    def after_own(self, x, read):
        return x + read

    def think(self, x):
        self.thought.append(tuple(x.shape))
        return x


def test_pictures_are_read_in_parts_and_the_last_layer_gives_keys_alone(monkeypatch):
    monkeypatch.setattr(decoder_stack, "_PLACES", 20)
    layers = [_CountingLayer(), _CountingLayer()]
    pairs = list(decoder_stack.read_prefix(layers, torch.ones(5, 8, 4), 2))
    assert [keys.shape for keys, _ in pairs] == [(5, 2, 8, 2)] * 2
    assert [layer.thought for layer in layers] == [[(2, 8, 4), (2, 8, 4), (1, 8, 4)], []]
