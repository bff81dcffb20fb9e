"""Each type that the library calls image-text-to-text, tiny and random: columns are those of its
own pass over the whole, and captions those of its own `generate`, in batches of 1, 7 and 64 images.
"""

import itertools

import numpy as np
import pytest
import torch
import transformers

from helpers import image_text_models as models
from helpers.image_text_models import END, CrudeInputs, LibraryAnswers
from prescore import model_types
from workers.inference import generation, scoring
from workers.inference.captioners import GenerationOptions
from workers.inference.huggingface import folder_processor, image_text_captioner

_FAST = ("qwen2_5_vl", "qwen3_5", "gemma3", "mllama", "florence2", "kosmos-2")
_BY_HAND = ("vision-encoder-decoder", "blip", "git")  # test_transformers.py
_KINDS = [kind for kind in model_types.READ if kind not in _BY_HAND]
_PICTURES = 4  # in mixed order, each several times: so the library is asked for few
_REFERENCES = (9, 1, 4)  # of the first image, the second, and so on
_MARKED = [kind if kind in _FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in _KINDS]


@pytest.fixture(scope="module", params=_MARKED)
def library(request):
    return LibraryAnswers(request.param)


def _mix(library, images):
    order = np.random.default_rng(images).permutation(images) % _PICTURES
    return CrudeInputs(library.inputs, order.tolist())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("images", "together"),
    [(1, 1), (7, 1), pytest.param(64, 1, marks=pytest.mark.slow), (7, 16), (64, 16)],
)
def test_columns_are_those_of_the_librarys_own_pass(library, images, together, monkeypatch):
    monkeypatch.setitem(image_text_captioner._PICTURES, "cpu", together)  # 16: as on CUDA
    ours = models.make_captioner(library.model, library.inputs)
    inputs = _mix(library, images)
    references = models.draw_references([_REFERENCES[at % 3] for at in range(images)])
    found = scoring.compute_columns(ours, inputs, references)
    captions = np.split(references.tokens, references.caption_offsets[1:-1])
    expected = [
        library.log_probabilities(inputs.pictures[image], words.tolist())
        for image, words in zip(references.caption_images, captions, strict=True)
    ]
    np.testing.assert_allclose(found.logp, torch.cat(expected).numpy(), atol=1e-4)
    assert found.logp.std() > 0.1, "otherwise nothing is compared"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_each_picture_is_read(library):
    """Otherwise the tests above would not see that two are mistaken for each other."""
    words = [*range(60, 180, 20), END]
    seen = [library.log_probabilities(picture, words) for picture in range(_PICTURES)]
    for one, other in itertools.combinations(seen, 2):
        assert (one - other).abs().max() > 1e-3


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("images", [1, 7, 64])
def test_captions_are_those_of_the_librarys_own_generate(library, images, beams):
    ours = models.make_captioner(library.model, library.inputs)
    inputs = _mix(library, images)
    search = GenerationOptions(beams=beams, most=6)
    found = [list(each.words) for each in generation.generate_captions(ours, inputs, search)]
    assert found == [library.generate(picture, beams, 6) for picture in inputs.pictures]
    assert not any(END in words for words in found)


def test_every_type_of_the_library_is_read_or_has_a_reason():
    assert sorted([*model_types.READ, *model_types.NOT_READ]) == sorted(models.list_types())


@pytest.mark.parametrize("kind", _KINDS)
def test_the_library_has_a_processor_of_each_type(kind):
    name = folder_processor.find_processor(kind)
    assert hasattr(transformers, name)
    backends = folder_processor.list_picture_processors(kind)
    assert backends
    assert ("pil" not in backends) == (kind in model_types.WITH_TORCHVISION)
