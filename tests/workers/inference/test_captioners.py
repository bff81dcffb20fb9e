import numpy as np
import pytest
import torch

from builders import KINDS, TORCH_GRUS, encoded, model, random_references, tensors
from oracles import captioner as oracle
from service.contract.formats.architectures import RecurrentConfig, list_tensor_shapes
from workers.inference.captioners.cells import CELLS
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


@pytest.mark.parametrize(("cell", "layer"), [("torch_gru", "GRU"), ("lstm", "LSTM")])
def test_cells_are_those_of_torch(cell, layer):
    """With its matrices transposed, those of the input above those of the state."""
    theirs = getattr(torch.nn, layer)(6, 8, batch_first=True)
    given, state, given_bias, state_bias = (each.detach() for each in theirs.parameters())
    rows = torch.cat([given.T, state.T])
    if cell == "lstm":
        tensors = {"gates.weight": rows, "gates.bias": given_bias + state_bias}
    else:
        tensors = {
            "gates.weight": rows[:, :16],
            "gates.bias": (given_bias + state_bias)[:16],
            "candidate.weight": rows[:, 16:],
            "candidate.bias": given_bias[16:],
            "candidate.state_bias": state_bias[16:],
        }
    ours = CELLS[cell](tensors, 6)
    inputs = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0))
    found, at = [], ours.start(torch.zeros(3, 8))
    for step in inputs.unbind(1):
        at = ours.step(step @ ours.input_weight + ours.input_bias, at)
        found.append(at[:, :8])
    torch.testing.assert_close(torch.stack(found, 1), theirs(inputs)[0].detach())


@pytest.mark.long
@pytest.mark.parametrize(("architecture", "cell"), [*KINDS, ("init", "torch_gru")])
def test_steps_with_a_state_give_what_teacher_forcing_gives(architecture, cell):
    arrays = tensors(architecture, cell)
    captioner = model(architecture, cell, arrays)
    features = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    images = captioner.look(features)
    words = [0, 7, 9, 11]
    state = captioner.begin(images)
    stepped = []
    for word in words:
        hidden, state = captioner.step(state, torch.full((3,), word))
        stepped.append(hidden)
    references = encoded([[words[1:]]] * 3)
    packed = pack_captions(references, np.arange(3), torch.device("cpu"))
    torch.testing.assert_close(torch.cat(stepped), captioner.hidden(images, packed))


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
