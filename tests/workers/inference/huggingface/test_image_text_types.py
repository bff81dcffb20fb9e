"""Each type that the library calls image-text-to-text, tiny and random: columns are those of its
own pass over the whole, and captions those of its own `generate`.
"""

import numpy as np
import pytest
import torch
import transformers

from helpers import image_text_models as models
from helpers.image_text_models import END, CrudeInputs
from prescore import model_types
from workers.inference import generation, scoring
from workers.inference.captioners import GenerationOptions
from workers.inference.huggingface import folder_processor

_FAST = ("qwen2_5_vl", "qwen3_5", "gemma3", "mllama", "florence2", "kosmos-2")
_BY_HAND = ("vision-encoder-decoder", "blip", "git")  # test_transformers.py


def _mark(kinds):
    return [kind if kind in _FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", _mark([kind for kind in model_types.READ if kind not in _BY_HAND]))
def test_a_type_gives_the_librarys_probabilities_and_captions(kind):
    model = models.make_model(kind)
    inputs = models.make_inputs(model)
    ours = models.make_captioner(model, inputs)
    _check_columns(model, ours, CrudeInputs(inputs, 2), [1, 9])
    _check_captions(model, ours, CrudeInputs(inputs, 2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("images", [1, 7, 64])
@pytest.mark.parametrize("kind", ["qwen2_5_vl", "qwen3_5", "gemma3", "llava", "t5gemma2"])
def test_batches_of_any_size_give_the_same(kind, images):
    model = models.make_model(kind)
    inputs = models.make_inputs(model)
    ours = models.make_captioner(model, inputs)
    _check_columns(model, ours, CrudeInputs(inputs, images), [3 + at % 3 for at in range(images)])
    _check_captions(model, ours, CrudeInputs(inputs, images))


def _check_columns(model, ours, inputs, counts):
    references = models.draw_references(counts)
    found = scoring.compute_columns(ours, inputs, references)
    expected = [
        models.log_probabilities(
            model, inputs.of_image(image), references.tokens[start:end].tolist()
        )
        for image, start, end in zip(
            references.caption_images,
            references.caption_offsets[:-1],
            references.caption_offsets[1:],
            strict=True,
        )
    ]
    np.testing.assert_allclose(found.logp, torch.cat(expected).numpy(), atol=1e-4)
    assert found.logp.std() > 0.1, "otherwise nothing is compared"
    if len(inputs) > 1:
        words = references.tokens[: references.caption_offsets[1]].tolist()
        seen = [models.log_probabilities(model, inputs.of_image(at), words) for at in (0, 1)]
        assert (seen[0] - seen[1]).abs().max() > 1e-5, "pictures are read"


def _check_captions(model, ours, inputs):
    for beams in (1, 3):
        search = GenerationOptions(beams=beams, most=6)
        found = [list(each.words) for each in generation.generate_captions(ours, inputs, search)]
        expected = [
            models.generate(model, inputs.of_image(image), num_beams=beams, max_new_tokens=6)
            for image in range(len(inputs))
        ]
        assert found == expected
        assert not any(END in words for words in found)


def test_every_type_of_the_library_is_read_or_has_a_reason():
    assert sorted([*model_types.READ, *model_types.NOT_READ]) == sorted(models.list_types())


@pytest.mark.parametrize("kind", [each for each in model_types.READ if each not in _BY_HAND])
def test_the_library_has_a_processor_of_each_type(kind):
    name = folder_processor.find_processor(kind)
    assert hasattr(transformers, name)
    backends = folder_processor.list_picture_processors(kind)
    assert backends
    assert ("pil" not in backends) == (kind in model_types.WITH_TORCHVISION)
