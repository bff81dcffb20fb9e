"""Kendall's tau c with Flickr8k-Expert, beside what others publish."""

import pytest

from parity import learned_sets
from workers.bench.judgements import Judgements, RatedCaption
from workers.bench.judging import scoring
from workers.bench.judging.verdict import judge_metrics
from workers.metrics import spice_tuples
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import text_encoder

NO_MODE = 126  # captions of which three people say three things: the figures take the lowest


@pytest.fixture(scope="module")
def java():
    with Jvm() as jvm:
        yield jvm


@pytest.fixture(scope="module")
def expert(data):
    """5,822 captions, each rated from 1 to 4 by three people, and whether it is of the image."""
    texts, of_image = learned_sets.flickr8k(data)
    rated, own = [], []
    for line in (data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8").splitlines():
        image, caption, *ratings = line.split("\t")
        references = tuple(of_image[image])
        rated.append(RatedCaption(texts[caption], references, tuple(map(float, ratings))))
        own.append(caption.split("#")[0] == image)
    return rated, own


def _others(rated, own):
    return [each for each, is_own in zip(rated, own, strict=True) if not is_own]


def _tau(rated, java, raters="flat", names=("cider_d",), **options):
    judgements = Judgements(rated)
    given = scoring.collect_captions(judgements)
    scored = scoring.score_captions(given, names, "ptb", java, **options)
    assert not scored.missing
    found = judge_metrics(judgements, given, scored, raters)["rated"]
    return {name: row["kendall_c"] for name, row in found.items()}


def test_cider_d_follows_the_experts_as_published(expert, java):
    """.439: without the 158 captions that are the image's own, each rating for itself."""
    rated = _others(*expert)
    assert (len(expert[0]), len(rated)) == (5822, 5664)
    assert _tau(rated, java)["cider_d"] == pytest.approx(0.4387, abs=0.002)
    over_lines = _tau(rated, java, frequencies=[each.references for each in rated])
    assert over_lines["cider_d"] == pytest.approx(0.4393, abs=0.002)
    assert _tau(expert[0], java)["cider_d"] == pytest.approx(0.484, abs=0.002)


@pytest.mark.slow  # each rating for itself: the test before
def test_cider_d_follows_the_most_frequent_rating(expert, java):
    rated = _others(*expert)
    assert sum(len(set(each.ratings)) == 3 for each in rated) == NO_MODE
    assert _tau(rated, java, "mode")["cider_d"] == pytest.approx(0.454, abs=0.002)
    assert _tau(expert[0], java, "mode")["cider_d"] == pytest.approx(0.498, abs=0.002)


@pytest.mark.slow
def test_the_other_metrics_follow_the_experts_as_published(expert, java):
    """SPICE's paper has these figures for BLEU-1, BLEU-4, ROUGE-L and METEOR."""
    published = {"bleu_1": 0.323, "bleu_4": 0.308, "rouge_l": 0.323, "meteor": 0.418}
    found = _tau(_others(*expert), java, names=list(published))
    assert found == pytest.approx(published, abs=0.001)


@pytest.mark.slow
def test_unit_vectors_follow_the_experts_better_as_the_guide_says(expert, java, data):
    """No published figures. The vectors are of captions, without Flickr8k's test captions."""
    tools = {"vectors": learned_sets.vectors(data)}
    judgements = Judgements(_others(*expert))
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
def test_metrics_by_a_language_model_follow_the_experts_as_the_guide_says(expert, java, minilm):
    """No published figures. MiniLM was trained on captions of the same photos, among others."""
    tools = {"encoder": text_encoder.read_encoder(minilm)}
    names = ["refscore", "bertscore"]
    found = _tau(_others(*expert), java, names=names, bring=lambda *_: tools)
    assert found == pytest.approx({"refscore": 0.552, "bertscore": 0.547}, abs=0.001)


@pytest.mark.slow
def test_spice_follows_the_experts_as_published(expert, java, spice_jars):
    """Some minutes of parsing."""
    parser = spice_tuples.TupleParser(spice_jars)
    try:
        found = _tau(
            _others(*expert), java, names=["spice"], bring=lambda *_: {"parse": parser.parse}
        )
    finally:
        parser.close()
    assert found["spice"] == pytest.approx(0.449, abs=0.002)
