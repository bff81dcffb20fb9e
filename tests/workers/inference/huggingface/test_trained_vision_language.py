"""Perplexities of trained models are the library's own loss."""

import numpy as np
import pytest
from PIL import Image

from helpers import synthetic_pictures
from helpers import vision_language_folders as folders
from workers.inference import checkpoints, scoring

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

IMAGES = 6


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "llava", "idefics3", "paligemma"])
def test_the_perplexity_of_a_trained_model_is_the_librarys_loss(kind, tmp_path):
    saved = folders.save_model(tmp_path / "model", kind)
    names = synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(IMAGES))
    pictures = [Image.open(tmp_path / "images" / name) for name in names]
    captions = [each[0] for each in synthetic_pictures.sentences(IMAGES)]
    folders.train(saved, pictures, captions, steps=60)
    model = checkpoints.open_captioner(saved.folder)
    encoded = model.tokens.encode([[caption] for caption in captions])
    inputs = model.inputs(tmp_path, names)
    found = scoring.compute_columns(model, inputs, encoded)
    for place, picture in enumerate(pictures):
        part = slice(*encoded.caption_offsets[place : place + 2])
        expected = folders.loss(saved, picture, encoded.tokens[part].tolist()).item()
        assert -found.logp[part].mean() == pytest.approx(expected, abs=1e-4)
    assert np.exp(-found.logp.mean()) < 5, "a random one has a perplexity of about 300"
