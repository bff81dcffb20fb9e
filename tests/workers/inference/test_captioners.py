import numpy as np
import pytest
import torch

from helpers.builders import KINDS, encoded, model, random_references, tensors
from workers.inference.packing import batch_captions, pack_captions


@pytest.mark.parametrize(("architecture", "cell"), [*KINDS, ("init", "torch_gru")])
def test_a_model_in_training_gives_the_same_logits_without_its_tables(architecture, cell):
    arrays = tensors(architecture, cell)
    frozen = model(architecture, cell, arrays)
    trained = {name: tensor.clone().requires_grad_() for name, tensor in frozen.tensors.items()}
    captioner = type(frozen)(frozen.description, trained)
    features = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    references = encoded([[[3, 4], []], [[5]]])
    packed = pack_captions(references, np.arange(3), torch.device("cpu"))
    rows = captioner.output(captioner.hidden(captioner.look(features), packed))
    rows.sum().backward()
    assert all(tensor.grad is not None for tensor in trained.values())
    expected = frozen.output(frozen.hidden(frozen.look(features), packed))
    torch.testing.assert_close(rows.detach(), expected)


def test_an_image_of_zeros_is_not_divided_by_its_length():
    captioner = model("init", "gru", tensors("init", "gru"))
    looked = captioner.look(torch.zeros(1, 5))
    torch.testing.assert_close(looked[0], captioner.tensors["image.bias"])


def test_batches_hold_every_caption_once_and_no_more_tokens_than_asked():
    rng = np.random.default_rng(0)
    references = encoded(random_references(40, 50, rng, longest=30))
    parts = batch_captions(references, 50)
    assert sorted(np.concatenate(parts)) == list(range(len(references.lengths)))
    assert all(references.lengths[part].sum() <= 50 or len(part) == 1 for part in parts)
    assert all((np.diff(references.lengths[part]) <= 0).all() for part in parts)
