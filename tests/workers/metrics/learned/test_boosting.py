"""Oracles: every question tried, one by one, by the definition; and what scikit-learn 1.9.1's
HistGradientBoostingClassifier said of the same captions.
"""

from itertools import pairwise

import numpy as np
import pytest

from workers.metrics.learned import boosting, epochs, learners
from workers.metrics.learned.boosting import Learning, Recipe

MANY = 400
# Of the first five captions of `problem`, after 20 trees by `learning_rate=0.1`,
# `max_leaf_nodes=None`, `early_stopping=False`; by depth, smallest leaf and beta.
SCIKIT_LEARN = {
    (3, 20, 1.0): [0.2641795, 0.1669266, 0.7756886, 0.8473696, 0.1883912],
    (2, 1, 0.0): [0.3684238, 0.1352166, 0.7116453, 0.8255169, 0.2169723],
}


@pytest.fixture(scope="module")
def problem():
    """Two features whose signs together say who wrote it, and one that says nothing; as many
    captions of either.
    """
    rng = np.random.default_rng(0)
    values = np.round(rng.uniform(-1, 1, (MANY, 3)), 1)
    telling = values[:, 0] * values[:, 1] + rng.normal(scale=0.1, size=MANY)
    human = np.zeros(MANY, bool)
    human[np.argsort(telling, kind="stable")[MANY // 2 :]] = True
    return values, human


def _grown(values, human, recipe, trees):
    learning = Learning(values, human, values, recipe)
    losses = [learning.epoch() for _ in range(trees)]
    return learning, losses


def _by_definition(values, human, recipe, trees):
    """Log odds: no sums kept, no bins, one caption and one question after the other."""
    odds = np.zeros(len(values))
    for _ in range(trees):
        chances = 1 / (1 + np.exp(-odds))
        slopes, curvatures = chances - human, chances * (1 - chances)
        odds = odds + _tree(values, slopes, curvatures, recipe, recipe.depth)
    return odds


def _loss(slopes, curvatures, beta):
    """The best that one number can do for these captions, by the loss's second-order expansion."""
    return -(slopes.sum() ** 2) / (curvatures.sum() + beta) / 2


def _tree(values, slopes, curvatures, recipe, depth):
    best, chosen = _loss(slopes, curvatures, recipe.beta), None
    for feature in range(values.shape[1] if depth else 0):
        seen = sorted(set(values[:, feature]))
        for low, high in pairwise(seen):
            left = values[:, feature] <= (low + high) / 2
            if min(left.sum(), (~left).sum()) >= recipe.smallest:
                loss = sum(
                    _loss(slopes[side], curvatures[side], recipe.beta) for side in (left, ~left)
                )
                if loss < best - 1e-12:
                    best, chosen = loss, left
    if chosen is None:
        leaf = -slopes.sum() / (curvatures.sum() + recipe.beta) * recipe.learning_rate
        return np.full(len(values), leaf)
    answers = np.zeros(len(values))
    for side in (chosen, ~chosen):
        given = values[side], slopes[side], curvatures[side]
        answers[side] = _tree(*given, recipe, depth - 1)
    return answers


@pytest.mark.parametrize(
    "recipe", [Recipe(), Recipe(depth=2, smallest=1, beta=0.0), Recipe(depth=4, beta=0.01)]
)
def test_trees_are_those_of_the_definition(problem, recipe):
    values, human = problem
    learning, _ = _grown(values, human, recipe, 6)
    expected = _by_definition(values, human, recipe, 6)
    np.testing.assert_allclose(learning.learnt().odds(values), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learning.watched(), 1 / (1 + np.exp(-expected)), atol=1e-9)


@pytest.mark.parametrize(("depth", "smallest", "beta"), [(3, 20, 1.0), (2, 1, 0.0)])
def test_scikit_learn_makes_the_same_trees(problem, depth, smallest, beta):
    values, human = problem
    recipe = Recipe(depth=depth, smallest=smallest, beta=beta)
    learning, _ = _grown(values, human, recipe, 20)
    found = learning.learnt()(values)[:5]
    np.testing.assert_allclose(found, SCIKIT_LEARN[depth, smallest, beta], atol=1e-6)


def test_the_loss_is_cross_entropy_and_falls(problem):
    values, human = problem
    learning, losses = _grown(values, human, Recipe(), 40)
    said = learning.watched()
    assert losses[-1] == pytest.approx(-np.mean(np.log(np.where(human, said, 1 - said))))
    assert losses == sorted(losses, reverse=True)
    assert np.mean((said > 0.5) == human) > 0.85


def test_leaves_are_no_smaller_than_asked(problem):
    values, human = problem
    learning, _ = _grown(values, human, Recipe(smallest=60), 30)
    trees = learning.learnt()
    for tree in zip(trees.features, trees.thresholds, trees.leaves, strict=True):
        one = boosting.Trees(*(part[None] for part in tree))
        _, sizes = np.unique(one.odds(values), return_counts=True)
        assert sizes.min() >= 60


def test_many_values_are_cut_at_quantiles():
    values = np.random.default_rng(0).uniform(-1, 1, (5000, 1)) ** 3
    cuts = boosting._cuts(values[:, 0])
    assert len(cuts) == boosting._CUTS
    _, counts = np.unique(np.searchsorted(cuts, values[:, 0]), return_counts=True)
    assert counts.max() - counts.min() <= 2
    human = values[:, 0] > np.median(values)
    learning, _ = _grown(values, human, Recipe(depth=1), 30)
    assert np.mean((learning.watched() > 0.5) == human) > 0.99


def test_features_that_say_nothing_leave_even_odds():
    human = np.arange(100) % 2 == 0
    learning, _ = _grown(np.zeros((100, 2)), human, Recipe(), 3)
    np.testing.assert_allclose(learning.watched(), 0.5)
    np.testing.assert_allclose(learning.learnt()(np.array([[1.0, -1.0]])), 0.5)


def test_what_was_learnt_stays_as_it_was_and_says_row_by_row_the_same(problem):
    values, human = problem
    learning, _ = _grown(values, human, Recipe(), 5)
    early, said = learning.learnt(), learning.watched()
    learning.epoch()
    np.testing.assert_array_equal(early(values), said)
    for rows in ([7], [3, 4, 5], list(range(0, MANY, 2))):
        np.testing.assert_array_equal(early(values[rows]), said[rows])


def test_no_tree_at_all_says_even_odds(problem):
    values, human = problem
    recipe = learners.recipe("boosting", epochs=3)
    learning = learners.begin(recipe, values, human, values)
    found = epochs.train(learning, lambda _: 0.0, lambda _: 1.0, recipe.epochs, recipe.patience)
    assert found.best_epoch == 0
    np.testing.assert_array_equal(found.classifier(values), 0.5)
