"""Oracle: the same network in torch, with its own automatic slopes and its own Adam."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from workers.bench.learned import nneval_fitting
from workers.bench.learned.nneval_fitting import NetworkRecipe, NetworkTraining
from workers.metrics.learned.network import HumanClassifier


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (600, 3))
    return values, values[:, 0] * values[:, 1] > 0  # no line tells them apart


def _torch_forward(layers, values):
    for weights, biases in layers[:-1]:
        values = functional.relu(values @ weights + biases)
    weights, biases = layers[-1]
    return values @ weights + biases


@pytest.mark.long
@pytest.mark.parametrize("hidden", [(), (5,), (72, 72)])
def test_each_step_is_torchs(problem, hidden):
    values, human = problem
    recipe = NetworkRecipe(hidden=hidden, learning_rate=0.01, beta=0.003)
    fitting = nneval_fitting._NetworkFitting(
        nneval_fitting._start(3, hidden, np.random.default_rng(1)), recipe
    )
    layers = [
        tuple(torch.tensor(part, requires_grad=True) for part in layer) for layer in fitting.layers
    ]
    flat = [part for layer in layers for part in layer]
    optimiser = torch.optim.Adam(flat, lr=0.01)
    for start in range(0, 600, 75):
        batch = slice(start, start + 75)
        logits = _torch_forward(layers, torch.tensor(values[batch]))
        expected = functional.cross_entropy(logits, torch.tensor(human[batch]).long())
        expected = expected + 0.003 / 2 * sum((weights**2).sum() for weights, _ in layers)
        optimiser.zero_grad()
        expected.backward()
        optimiser.step()
        loss = fitting.step(values[batch], human[batch])
        assert loss == pytest.approx(expected.item(), rel=1e-12)
    for ours, theirs in zip(fitting.layers, layers, strict=True):
        for part, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(part, other.detach().numpy(), rtol=0, atol=1e-9)
    probability = torch.softmax(_torch_forward(layers, torch.tensor(values)), dim=1)[:, 1]
    np.testing.assert_allclose(
        HumanClassifier(fitting.layers)(values), probability.detach().numpy(), atol=1e-9
    )


def test_it_begins_as_glorot_says():
    weights = nneval_fitting._start(8, (72, 72), np.random.default_rng(0))
    assert [each.shape for each in weights] == [(8, 72), (72, 72), (72, 2)]
    for each in weights:
        limit = np.sqrt(6 / sum(each.shape))
        assert 0.9 * limit < np.abs(each).max() <= limit
        assert abs(each.mean()) < 0.1 * limit


def test_one_seed_gives_one_network_and_another_another(problem):
    values, human = problem

    def learnt(seed):
        learning = NetworkTraining(values, human, values, NetworkRecipe(seed=seed))
        learning.epoch()
        return learning.learnt().tensors()

    first, again, other = learnt(5), learnt(5), learnt(6)
    for name, tensor in first.items():
        np.testing.assert_array_equal(tensor, again[name])
    assert any(not np.array_equal(tensor, other[name]) for name, tensor in first.items())


def test_what_was_learnt_stays_as_it_was(problem):
    values, human = problem
    learning = NetworkTraining(values, human, values, NetworkRecipe(hidden=(4,)))
    learning.epoch()
    early, said = learning.learnt(), learning.watched()
    learning.epoch()
    np.testing.assert_array_equal(early(values), said)
    assert not np.array_equal(learning.watched(), said)


def test_far_logits_are_certain_and_no_overflow():
    layers = [(np.array([[0.0, 1.0]]), np.zeros(2))]
    found = HumanClassifier(layers)(np.array([[-2000.0], [0.0], [2000.0]]))
    assert found.tolist() == [0.0, 0.5, 1.0]
