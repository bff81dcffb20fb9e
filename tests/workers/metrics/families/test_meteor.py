"""METEOR of captions that nobody would write: refused before Java has them."""

import numpy as np
import pytest

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.metrics import postgen, references
from workers.metrics.families import meteor
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm


def _task(captions, people, jvm):
    prepared = references.index_tokens(people, "none")
    return ScoringInput(captions, np.arange(len(captions)), prepared, jvm)


@pytest.mark.parametrize("text", ["( " * 400, "(" * 400, "a, " * 300])
def test_too_many_equal_words_fail_the_metric_and_say_what_to_do(text):
    """T62: 1,000 brackets and a reference of 1,000 took Java more than two minutes."""
    with Jvm() as unused:
        task = _task(["a dog", text], [["the dog"], [text]], unused)
        with pytest.raises(MetricFailed, match=r"caption 1 .* expected at most 100,000; score it"):
            meteor.measure(task)
        assert unused.pid is None


def test_long_captions_go_to_java_a_few_at_a_time():
    """T62: an answer to all that go together has to come in time."""
    long, usual = " ".join(["dog"] * 300), "a dog"
    captions = [usual, *[long] * 5, *[usual] * 450]
    with Jvm() as unused:
        task = _task(captions, [[text] for text in captions], unused)
        found = list(meteor._batches(task))
    assert [len(batch) for batch in found] == [3, 2, 200, 200, 51]
    assert [caption for batch in found for caption, _ in batch] == captions


@pytest.mark.parametrize(
    ("captions", "people", "side"),
    [
        (["一只狗", "a dog", "一只狗在草地上奔跑"], [["a dog"]] * 3, "captions"),
        (["a dog"] * 2, [["一只狗在草地上奔跑", "犬が草の上を走っている"]] * 2, "references"),
    ],
)
def test_text_without_blanks_is_not_scored_as_english(captions, people, side):
    with Jvm() as unused:
        task = _task(captions, people, unused)
        with pytest.raises(MetricUnavailable, match=rf"most {side} .*tokenizer \"none\""):
            postgen.check_blanks("meteor", task)
        postgen.check_blanks("meteor", _task(["a dog", "一只狗"], [["ein Hund"]] * 2, unused))
