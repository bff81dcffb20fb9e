import numpy as np
import pytest
import torch

from helpers.builders import KINDS, TORCH_GRUS, encoded, model, random_references, tensors
from oracles import captioner as oracle
from service.contract.formats.architectures import RecurrentConfig, list_tensor_shapes
from workers.inference.packing import batch_captions, pack_captions
from workers.inference.vocabulary import EncodedCaptions


def _logits(captioner, features, references: EncodedCaptions) -> np.ndarray:
    captions = np.arange(len(references.lengths))
    packed = pack_captions(references, captions, torch.device("cpu"))
    rows = captioner.output(captioner.hidden(captioner.look(features), packed))
    result = np.empty(rows.shape)
    result[packed.places] = rows.numpy()
    return result


@pytest.mark.parametrize(("embedding", "image"), [(None, None), (6, None), (6, 3)])
@pytest.mark.parametrize(("architecture", "cell"), [*KINDS, *TORCH_GRUS])
def test_teacher_forcing_gives_the_logits_of_the_definition(architecture, cell, embedding, image):
    rng = np.random.default_rng(1)
    arrays = tensors(architecture, cell, embedding=embedding, image=image)
    features = rng.normal(size=(4, 5)).astype(np.float32)
    references = random_references(4, 50, rng)
    expected = np.concatenate(
        [
            oracle.forward(architecture, cell, arrays, row, words)
            for row, captions in zip(features, references, strict=True)
            for words in captions
        ]
    )
    found = _logits(
        model(architecture, cell, arrays), torch.from_numpy(features), encoded(references)
    )
    np.testing.assert_allclose(found, expected, atol=2e-6)


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


PAPER = [  # architecture, size, parameters for V = 2539, 7415, 8792 (D = 4096)
    ("init", 512, (6_274_539, 11_272_439, 12_683_864)),
    ("pre", 512, (6_274_539, 11_272_439, 12_683_864)),
    ("par", 256, (2_942_187, 5_443_575, 6_149_976)),
    ("merge", 128, (1_600_747, 3_478_007, 4_008_152)),
]


@pytest.mark.parametrize(("architecture", "size", "counts"), PAPER)
def test_parameter_counts_are_the_papers(architecture, size, counts):
    config = RecurrentConfig(cell="gru", size=size, feature_size=4096)
    for words, expected in zip((2539, 7415, 8792), counts, strict=True):
        sizes = list_tensor_shapes(architecture, config, words).values()
        assert sum(int(np.prod(shape)) for shape in sizes) == expected


def test_batches_hold_every_caption_once_and_no_more_tokens_than_asked():
    rng = np.random.default_rng(0)
    references = encoded(random_references(40, 50, rng, longest=30))
    parts = batch_captions(references, 50)
    assert sorted(np.concatenate(parts)) == list(range(len(references.lengths)))
    assert all(references.lengths[part].sum() <= 50 or len(part) == 1 for part in parts)
    assert all((np.diff(references.lengths[part]) <= 0).all() for part in parts)
