import numpy as np
import pytest
import torch

from helpers import interruptions
from helpers.builders import ENCODER, encoded
from service.contract.errors import RunCanceled
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointDescription
from workers.inference import decoding
from workers.inference.captioners import DropoutRates
from workers.lab import training
from workers.lab.training import CaptionedImages, TrainingRecipe

WORDS = ("<edge>", "<unk>", "a", "red", "blue", "ball", "box")
RECIPE = TrainingRecipe(
    8, DropoutRates(0, 0, 0), 0.0, xavier=True, clip=1.0, learning_rate=0.02, epochs=25
)


def _description(architecture="merge", cell="gru"):
    config = RecurrentConfig(cell=cell, size=16, feature_size=4)
    return CheckpointDescription(architecture, config, WORDS, "blanks", ENCODER)


def _examples(images, seed):
    """An image is a colour and a shape; its captions are `a COLOUR SHAPE`."""
    rng = np.random.default_rng(seed)
    colours, shapes = rng.integers(0, 2, images), rng.integers(0, 2, images)
    rows = np.zeros((images, 4), np.float32)
    rows[np.arange(images), colours] = rows[np.arange(images), 2 + shapes] = 1
    captions = [[[2, 3 + c, 5 + s]] * 2 for c, s in zip(colours, shapes, strict=True)]
    return CaptionedImages(rows, encoded(captions)), captions


@pytest.mark.long
@pytest.mark.parametrize(
    ("architecture", "cell"),
    [
        ("init", "gru"),
        ("merge", "lstm"),
        *(pytest.param(each, "gru", marks=pytest.mark.slow) for each in ("pre", "par", "merge")),
        *(pytest.param(each, "lstm", marks=pytest.mark.slow) for each in ("init", "pre", "par")),
    ],
)
def test_every_captioner_learns_to_say_what_it_sees(architecture, cell):
    examples, _ = _examples(60, 0)
    test, captions = _examples(12, 1)
    *_, last = training.train_captioner(
        _description(architecture, cell), examples, examples, RECIPE
    )
    found = decoding.decode_captions(
        last.model, test.features, decoding.DecodingOptions(beam=2, min_words=0)
    )
    assert [list(caption.words) for caption in found] == [image[0] for image in captions]
    assert last.validation_perplexity < 1.3


@pytest.mark.long
def test_epoch_0_is_the_untrained_model():
    examples, _ = _examples(20, 0)
    recipe = training.replace(RECIPE, clip=0.01)
    first = next(iter(training.train_captioner(_description(), examples, examples, recipe)))
    assert first.number == 0
    assert first.validation_perplexity == pytest.approx(len(WORDS), rel=0.05)


def test_training_ends_at_the_first_epoch_that_is_worse():
    examples, _ = _examples(40, 0)
    other, _ = _examples(10, 1)
    rng = np.random.default_rng(0)
    nonsense = CaptionedImages(
        other.features, encoded([[rng.integers(2, 7, 3).tolist()] for _ in "0" * 10])
    )
    epochs = list(training.train_captioner(_description(), examples, nonsense, RECIPE))
    perplexities = [epoch.validation_perplexity for epoch in epochs[1:]]
    assert len(epochs) < 1 + RECIPE.epochs
    assert perplexities[-1] > perplexities[-2]
    assert perplexities[:-1] == sorted(perplexities[:-1], reverse=True)
    to_the_end = training.replace(RECIPE, epochs=len(epochs) + 1, early_stop=False)
    further = list(training.train_captioner(_description(), examples, nonsense, to_the_end))
    assert [epoch.number for epoch in further] == list(range(len(epochs) + 2))


def test_a_seed_gives_the_same_model_again():
    examples, _ = _examples(20, 0)

    def weights(seed):
        recipe = training.replace(RECIPE, epochs=2, seed=seed)
        *_, last = training.train_captioner(_description(), examples, examples, recipe)
        return last.model.tensors["output.weight"]

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_a_yielded_model_does_not_change_as_training_goes_on():
    examples, _ = _examples(20, 0)
    epochs = training.train_captioner(_description(), examples, examples, RECIPE)
    first = next(epochs).model
    before = first.tensors["output.weight"].clone()
    next(epochs)
    assert torch.equal(first.tensors["output.weight"], before)


def test_a_training_that_is_stopped_ends_at_a_batch():
    examples, _ = _examples(40, 0)
    told: list[tuple[int, int]] = []

    def progress(done, total):
        told.append((done, total))
        if len(told) == 3:
            interruptions.ends(done, total)

    epochs = training.train_captioner(
        _description(),
        examples,
        examples,
        RECIPE,
        progress=progress,
    )
    next(epochs)
    with pytest.raises(RunCanceled):
        next(epochs)
    assert told == [(8, 80), (16, 80), (24, 80)]
