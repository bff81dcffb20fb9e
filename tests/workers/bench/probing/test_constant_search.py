"""Oracle: every sentence scored for all images by pycocoevalcap, the first of the best taken."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers import interruptions
from oracles import coco_scorers
from oracles.caption_definitions import count_common
from service.contract.errors import MetricFailed, RunCanceled, UnknownMetric
from workers.bench.probing import constant_search
from workers.bench.probing.constant_objectives import NumberedSentences, ReferenceSubsequences
from workers.metrics import references

# PTB's "3 1/2" holds a no-break space: one token, two words. No reference holds "y" and "z".
KNOWN = ("a", "b", "c", "3\u00a04")
PEOPLE = st.lists(
    st.lists(st.lists(st.sampled_from(KNOWN), max_size=6).map(" ".join), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)
SENTENCES = st.lists(
    st.lists(st.sampled_from((*KNOWN, "y", "z")), max_size=6).map(" ".join),
    min_size=1,
    max_size=12,
)


def _best(sentences, people, objective, **how):
    return constant_search.find_best_sentence(
        sentences, references.index_tokens(people, "none"), objective, **how
    )


def _brute(sentences, people, objective):
    images = len(people)
    return [
        coco_scorers.scores([sentence] * images, people, [objective])[objective]
        for sentence in sentences
    ]


@pytest.mark.long
@given(SENTENCES, PEOPLE, st.sampled_from([*coco_scorers.BLEU, "rouge_l"]))
def test_the_first_of_the_best_sentences_is_found_with_its_score_in_all_digits(
    sentences, people, objective
):
    scores = _brute(sentences, people, objective)
    found = _best(sentences, people, objective)
    assert (found.place, found.score) == (int(np.argmax(scores)), max(scores))
    assert found.text == sentences[found.place]


@pytest.mark.long
@given(SENTENCES, PEOPLE)
def test_the_best_sentence_for_cider_d_is_found(sentences, people):
    """Its published scorer adds up in another order: the last digits differ. It fails where no
    reference holds a word.
    """
    people = [*people, ["a b"]]
    scores = _brute(sentences, people, "cider_d")
    found = _best(sentences, people, "cider_d")
    assert found.score == pytest.approx(max(scores), rel=1e-12, abs=1e-15)
    assert scores[found.place] == pytest.approx(max(scores), rel=1e-12, abs=1e-15)
    assert sentences.index(found.text) == found.place


@pytest.mark.long
@given(SENTENCES, PEOPLE, st.sampled_from(sorted(constant_search.OBJECTIVES)))
@example(["a"], [["a", "a b c"]], "rouge_l")
def test_a_bound_is_never_below_the_score(sentences, people, objective):
    prepared = references.index_tokens(people, "none")
    chosen = constant_search.OBJECTIVES[objective](NumberedSentences(sentences, prepared), prepared)
    places = np.arange(len(sentences))
    assert (chosen.bounds(places) >= chosen.scores(places)).all()


def test_of_equally_good_sentences_the_earliest_wins_whatever_their_bounds(monkeypatch):
    class Tight:
        """Fake: the real bounds are a little above their scores."""

        batch = 1

        def __init__(self, sentences, references):
            pass

        def bounds(self, places):
            return np.array([2.0, 3.0, 2.0])[places]

        def scores(self, places):
            return [2.0 for _ in places]

    monkeypatch.setattr(constant_search, "OBJECTIVES", {"tight": Tight})
    found = _best(["x", "y", "z"], [["a"]], "tight")
    assert (found.text, found.score, found.scored) == ("x", 2.0, 2)


@pytest.mark.long
@pytest.mark.parametrize("objective", ["bleu_4", "cider_d", "rouge_l"])
def test_few_sentences_of_many_are_scored(objective):
    sentences, people = _corpus()
    scores = _brute(sentences[:100], people, objective)
    found = _best(sentences, people, objective)
    assert found.score >= max(scores)
    assert _best(sentences[:100], people, objective).place == int(np.argmax(scores))
    assert found.scored < found.different < len(sentences)


@given(st.lists(st.sampled_from("abcde"), max_size=80), st.lists(st.text("abcdf", max_size=80)))
def test_common_subsequences_are_those_of_the_usual_table(sentence, people):
    people = [[" ".join(text)] for text in people] or [["a"]]
    prepared = references.index_tokens(people, "none")
    encoded = NumberedSentences([" ".join(sentence)], prepared)
    found = ReferenceSubsequences(prepared).lengths(encoded.tokens(0).tolist())
    own = " ".join(sentence).split(" ")
    assert found.tolist() == [count_common(own, text.split(" ")) for (text,) in people]


def test_a_state_of_another_search_is_left_alone_and_no_state_is_an_error(tmp_path):
    sentences, people = _corpus()
    state = tmp_path / "state"
    _best(sentences, people, "bleu_1", state=state)
    for other in ((sentences, people, "bleu_4"), (sentences[1:], people, "bleu_1")):
        assert _best(*other, state=state) == _best(*other)
    fewer = [image[:1] for image in people]
    assert _best(sentences, fewer, "bleu_4", state=state) == _best(sentences, fewer, "bleu_4")
    state.write_bytes(b"something else")
    with pytest.raises(MetricFailed, match="no state of a search"):
        _best(sentences, people, "bleu_4", state=state)


@pytest.mark.long
@pytest.mark.parametrize("objective", constant_search.OBJECTIVES)
def test_a_search_that_is_stopped_goes_on(tmp_path, objective, monkeypatch):
    monkeypatch.setattr(constant_search, "_BLOCK", 100)
    sentences, people = _corpus()
    state, answers = tmp_path / "state", iter([False] * 10 + [True])
    with pytest.raises(RunCanceled):
        _best(
            sentences,
            people,
            objective,
            state=state,
            progress=interruptions.ends_when(lambda _: next(answers)),
        )
    told = []
    found = _best(sentences, people, objective, state=state, progress=lambda *at: told.append(at))
    assert found == _best(sentences, people, objective)
    assert told[0][0] >= 900
    assert told == sorted(told)
    assert told[-1] == (2 * found.different, 2 * found.different)


def test_what_cannot_be_searched_is_an_error():
    with pytest.raises(MetricFailed, match="at least one training sentence"):
        _best([], [["a"]], "bleu_4")
    with pytest.raises(UnknownMetric, match="bleu_1, bleu_2, bleu_3, bleu_4, cider_d, rouge_l"):
        _best(["a"], [["a"]], "meteor")


def _corpus():
    """1,000 sentences of 3 to 14 words by Zipf's law, some twice; 20 images, 3 references each."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 40)
    drawn = rng.choice(39, (1060, 14), p=share / share.sum()).tolist()
    lengths = rng.integers(3, 15, 1060)
    texts = [
        " ".join(f"w{word}" for word in row[:length])
        for row, length in zip(drawn, lengths, strict=True)
    ]
    people = [texts[start : start + 3] for start in range(0, 60, 3)]
    return [*texts[60:], *texts[100:110]], people
