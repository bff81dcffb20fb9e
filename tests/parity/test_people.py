"""Kendall's tau c with Flickr8k-Expert, beside what others publish."""

import pytest

from parity import learned_sets
from workers.bench.judgements import Judgements, RatedCaption
from workers.bench.judging import scoring
from workers.bench.judging.verdict import judge_metrics
from workers.metrics import spice_tuples
from workers.metrics.java.jvm import Jvm

NO_MODE = 126  # captions of which three people say three things: the figures take the lowest


@pytest.fixture(scope="module")
def java():
    with Jvm() as jvm:
        yield jvm


@pytest.fixture(scope="module")
def all_rated(data):
    """5,822 captions, each rated from 1 to 4 by three people."""
    return _lines(learned_sets.expert(data, own=True))


@pytest.fixture(scope="module")
def rated(data):
    """Those of other images."""
    return _lines(learned_sets.expert(data))


def _lines(judged):
    rows = zip(judged.captions, judged.reference_sets, judged.ratings.tolist(), strict=True)
    return [RatedCaption(caption, people, tuple(ratings)) for caption, people, ratings in rows]


def _tau(rated, java, raters="flat", names=("cider_d",), **options):
    judgements = Judgements(rated)
    given = scoring.collect_captions(judgements)
    scored = scoring.score_captions(given, names, "ptb", java, **options)
    assert not scored.missing
    found = judge_metrics(judgements, given, scored, raters)["rated"]
    return {name: row["kendall_c"] for name, row in found.items()}


@pytest.mark.parametrize(
    ("raters", "others", "own"), [("flat", 0.4387, 0.484), ("mode", 0.454, 0.498)]
)
def test_cider_d_follows_the_experts_as_published(rated, all_rated, java, raters, others, own):
    """Without the 158 captions that are the image's own, and with them."""
    assert (len(all_rated), len(rated)) == (5822, 5664)
    assert sum(len(set(each.ratings)) == 3 for each in rated) == NO_MODE
    assert _tau(rated, java, raters)["cider_d"] == pytest.approx(others, abs=0.002)
    assert _tau(all_rated, java, raters)["cider_d"] == pytest.approx(own, abs=0.002)


def test_cider_d_with_the_frequencies_of_lines_is_the_published_one(rated, java):
    found = _tau(rated, java, frequencies=[each.references for each in rated])
    assert found["cider_d"] == pytest.approx(0.4393, abs=0.002)


@pytest.mark.slow
def test_the_other_metrics_follow_the_experts_as_published(rated, java):
    """SPICE's paper has these figures for BLEU-1, BLEU-4, ROUGE-L and METEOR."""
    published = {"bleu_1": 0.323, "bleu_4": 0.308, "rouge_l": 0.323, "meteor": 0.418}
    found = _tau(rated, java, names=list(published))
    assert found == pytest.approx(published, abs=0.001)


@pytest.mark.slow
def test_unit_vectors_follow_the_experts_better_as_the_guide_says(rated, java, data):
    """No published figures. The vectors are of captions, without Flickr8k's test captions."""
    tools = {"vectors": learned_sets.vectors(data)}
    judgements = Judgements(rated)
    given = scoring.collect_captions(judgements)
    names = ["wmd", "wmd_unit", "cider_d"]
    scored = scoring.score_captions(
        given, names, "ptb", java, bring=lambda family, _: tools if "wmd" in family else {}
    )
    found = judge_metrics(judgements, given, scored, "flat", "wmd_unit")
    tau = {name: row["kendall_c"] for name, row in found["rated"].items()}
    assert tau == pytest.approx({"wmd": 0.433, "wmd_unit": 0.486, "cider_d": 0.438}, abs=0.001)
    rows = found["comparisons"]["rated"]["kendall_c"]["metrics"]
    assert rows["wmd"]["interval"] == pytest.approx((-0.060, -0.046), abs=0.001)
    assert rows["cider_d"]["interval"] == pytest.approx((-0.057, -0.039), abs=0.001)


@pytest.mark.slow
def test_spice_follows_the_experts_as_published(rated, java, spice_jars):
    """Some minutes of parsing."""
    parser = spice_tuples.TupleParser(spice_tuples.make_jvm(spice_jars))
    try:
        found = _tau(rated, java, names=["spice"], bring=lambda *_: {"parse": parser.parse})
    finally:
        parser.close()
    assert found["spice"] == pytest.approx(0.449, abs=0.002)
