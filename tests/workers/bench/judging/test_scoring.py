"""Judged captions' scores beside CIDEr-D from its definition and pycocoevalcap's other scorers."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.rouge.rouge import Rouge

from helpers import encoders, interruptions, learned_models
from oracles import caption_definitions as definitions
from service.contract.errors import RunCanceled, UnknownMetric
from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.bench.judging import scoring
from workers.bench.judging.verdict import judge_metrics
from workers.metrics import postgen, references
from workers.metrics.accord import large_model
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.tokens import tokenize
from workers.metrics.vectors import text_encoder, word_vectors

CATS = ("a cat sits on a mat", "the cat is on the mat", "one cat")
DOGS = ("a dog runs", "the brown dog runs in a park")
BIRDS = ("a bird in a tree", "two birds sit in the tree", "birds", "a tree")
PARK = ("people walk in the park", "a park")
JUDGEMENTS = Judgements(
    rated=[
        RatedCaption("a cat on a mat", CATS, (4.0, 3.0, 4.0)),
        RatedCaption("a dog in a park", DOGS, (4.0,)),
        RatedCaption("a cat on a mat", DOGS, (1.0, 1.0)),
        RatedCaption("", BIRDS, (1.0, 2.0)),
        RatedCaption("a bird sits in the tree", BIRDS[::-1], (4.0, 4.0)),
        RatedCaption("a cat on a mat", CATS, (3.0,)),
    ],
    pairs=[
        JudgedPair(CATS, "a cat on a mat", "a dog in a park", "a", "HM"),
        JudgedPair(BIRDS, "two birds", "a cat on a mat", "b"),
    ],
)
LINES = [(each.candidate, each.references) for each in JUDGEMENTS.rated]


@pytest.fixture
def java():
    with Jvm() as jvm:
        yield jvm  # nothing here needs it: it does not start


def _scored(java, names=("cider_d", "bleu_1", "bleu_4", "rouge_l"), **options):
    given = scoring.collect_captions(JUDGEMENTS)
    return given, scoring.score_captions(given, names, "none", java, **options)


def _bring(**needs):
    return lambda _family, _progress: needs


def _for(wanted, **needs):
    return lambda family, _progress: needs if family == wanted else {}


def test_what_repeats_is_analysed_once(java):
    given, _ = _scored(java)
    assert given.reference_sets == [CATS, DOGS, BIRDS]  # in any order the same set
    assert len(given.texts) == 8
    assert given.rated[0] == given.rated[5] == given.pairs[0, 0]
    said = [(given.texts[place], given.reference_sets[given.rows[place]]) for place in given.rated]
    assert [text for text, _ in said] == [text for text, _ in LINES]


def test_lines_hang_together_by_image_and_else_by_references():
    lines = [
        (("p", "q"), "1.jpg"),
        (("p",), "1.jpg"),  # other references of the same image
        (("q", "p"), None),  # the references of an image that another line names
        (("r",), None),
        (("r",), None),
        (("r",), "2.jpg"),
        (("s",), None),
    ]
    rated = [RatedCaption("x", references, (1.0,), image) for references, image in lines]
    judgements = Judgements(rated, [JudgedPair(("p", "q"), "x", "y", "a", None, "1.jpg")])
    found = scoring.cluster_lines(judgements, scoring.collect_captions(judgements))
    assert found.rated.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert found.pairs.tolist() == [0]


def test_document_frequencies_are_those_of_the_files_distinct_sets(java):
    given, scored = _scored(java)
    expected = definitions.cider_d(*zip(*LINES, strict=True), [CATS, DOGS, BIRDS])
    np.testing.assert_allclose(scored.values["cider_d"][given.rated], expected, rtol=1e-12)
    assert scored.signatures["cider_d"].startswith("cider_d|refs:2-4|tok:none|df:corpus(n=3)|")


@pytest.mark.parametrize("others", [[PARK, DOGS, BIRDS, ("cat", "mat")], [PARK] * 5 + [CATS]])
def test_document_frequencies_of_another_dataset_count_nothing_of_the_file(java, others):
    given, scored = _scored(java, frequencies=others)
    expected = definitions.cider_d(*zip(*LINES, strict=True), others)
    np.testing.assert_allclose(scored.values["cider_d"][given.rated], expected, rtol=1e-12)
    signature = scored.signatures["cider_d"]
    assert signature.startswith(f"cider_d|refs:2-4|tok:none|df:given(n={len(others)})|")


SAID = {at: [text] for at, (text, _) in enumerate(LINES)}
PEOPLE = {at: list(references) for at, (_, references) in enumerate(LINES)}


def test_each_line_is_scored_against_its_own_references(java):
    given, scored = _scored(java)
    bleu = Bleu(4).compute_score(PEOPLE, SAID, verbose=0)[1]
    rouge = Rouge().compute_score(PEOPLE, SAID)[1]
    for name, expected in (("bleu_1", bleu[0]), ("bleu_4", bleu[3]), ("rouge_l", rouge)):
        np.testing.assert_allclose(scored.values[name][given.rated], expected, rtol=1e-12)


def test_a_metric_that_is_unavailable_is_said_and_the_others_go_on(java):
    _, scored = _scored(java, ["spice", "bleu_2", "spider"])
    assert list(scored.values) == ["bleu_2"]
    assert set(scored.missing) == {"spice", "spider"}
    assert "parser" in scored.missing["spice"].detail


def test_spice_and_spider_come_from_a_parser(java):
    parsed = {text: [["cat"]] if "cat" in text else [["dog"]] for _, p in LINES for text in p}
    parsed |= {text: [["cat"]] for text, _ in LINES}

    def parse(texts):
        return {text: parsed.get(text, [["bird"]]) for text in texts}

    names = ["spice", "cider_d", "spider"]
    given, scored = _scored(java, names, bring=_bring(parse=parse))
    assert scored.values["spice"][given.rated[0]] == 1
    together = (scored.values["spice"] + scored.values["cider_d"]) / 2
    np.testing.assert_array_equal(scored.values["spider"], together)
    _, alone = _scored(java, ["spider"], bring=_bring(parse=parse))
    np.testing.assert_array_equal(alone.values["spider"], together)


def test_of_a_distance_less_is_better(java):
    """Vectors on a line: cats near mats, birds far away."""
    words = ["cat", "mat", "dog", "park", "bird", "birds", "tree"]
    keys = b"".join(word_vectors.hash_word(word.encode()) for word in words)
    vectors = np.array([[0], [1], [5], [6], [20], [20], [21]], np.float32)
    bring = _bring(vectors=word_vectors.collect_vectors("made up", vectors, keys))
    given, scored = _scored(java, ["wmd", "wmd_distance"], bring=bring)
    found = judge_metrics(JUDGEMENTS, given, scored, "flat")["pairs"]
    assert found["wmd"] == found["wmd_distance"]
    assert found["wmd"]["HM"]["accuracy"] == 1


@pytest.mark.long
@pytest.mark.parametrize("frequencies", [None, [DOGS]])
@pytest.mark.parametrize("family", ["bertscore", "refscore", "accord_large"])
def test_language_models_read_captions_as_they_are(
    java, tmp_path, monkeypatch, family, frequencies
):
    """The family `accord_large` also reads tokens."""
    model = text_encoder.read_encoder(encoders.make(tmp_path))
    own = partial(replace, large_model.load_shipped_large_model(), encoder=model.name)
    monkeypatch.setattr(large_model, "load_shipped_large_model", own)
    bring = _for(family, encoder=model)
    given, scored = _scored(java, [family, "bleu_1"], bring=bring, frequencies=frequencies)
    texts, people = [text for text, _ in LINES], [references for _, references in LINES]
    reads_tokens = family == "accord_large"
    prepared = references.index_tokens(people, "none") if reads_tokens else None
    tools = {"encoder": model, "texts": texts, "people": people}
    task = ScoringInput(texts, np.arange(len(LINES)), prepared, java, tools=tools)
    expected = postgen.score_family(family, task).captions[family]
    np.testing.assert_allclose(scored.values[family][given.rated], expected, atol=1e-6)
    tokens = "none" if reads_tokens else "model"
    assert scored.signatures[family].startswith(f"{family}|refs:2-4|tok:{tokens}|model:")


CORPUS = [CATS, DOGS, ("a cat", "a park"), ("the bird in the tree", "a dog"), ("on a mat",)]


@pytest.mark.parametrize("frequencies", [None, [PARK, CATS]])
def test_a_learned_metric_has_the_document_frequencies_of_its_training(java, frequencies):
    """Whatever the file's own are, or those that others are scored with."""
    model = learned_models.by_chance(CORPUS)
    bring = _for("nneval", model=model)
    given, scored = _scored(java, ["cider_d", "nneval"], bring=bring, frequencies=frequencies)
    bleu = Bleu(4).compute_score(PEOPLE, SAID, verbose=0)[1]
    cider_d = definitions.cider_d(*zip(*LINES, strict=True), CORPUS)
    for at, place in enumerate(given.rated):
        own = {
            "bleu_1": bleu[0][at],
            "bleu_4": bleu[3][at],
            "cider_d": cider_d[at],
        }
        expected = learned_models.human(model, own)
        assert scored.values["nneval"][place] == pytest.approx(expected, rel=1e-9)
    assert scored.signatures["nneval"].startswith("nneval|refs:2-4|tok:none|model:")
    found = judge_metrics(JUDGEMENTS, given, scored, "flat")
    assert found["rated"]["nneval"]["n"] == 6
    assert set(found["pairs"]["nneval"]) > {"HM", "all"}


def test_names_are_expanded_and_what_needs_a_model_is_refused():
    assert scoring.choose_metrics(["cider_d", "bleu", "bleu_4"]) == [
        *("cider_d", "bleu_1", "bleu_2", "bleu_3", "bleu_4")
    ]
    assert {"meteor", "spice", "cider", "rouge_l", "wmd", "bertscore", "nneval"} < set(
        scoring.choose_metrics(["all"])
    )
    with pytest.raises(
        UnknownMetric, match="perplexity does not compare a caption with references"
    ):
        scoring.choose_metrics(["perplexity"])
    with pytest.raises(UnknownMetric, match="caption_length does not compare"):
        scoring.choose_metrics(["variety"])
    assert scoring.choose_metrics(["accord@0123456789ab"]) == ["accord@0123456789ab"]
    with pytest.raises(UnknownMetric, match="did you mean cider_d"):
        scoring.choose_metrics(["ciderd"])


def test_it_stops_when_it_is_asked_to(java):
    with pytest.raises(RunCanceled):
        _scored(java, told=lambda _family: interruptions.ends)


def test_the_verdict_counts_lines_and_observations(java):
    given, scored = _scored(java)
    found = judge_metrics(JUDGEMENTS, given, scored, "flat")
    row = found["rated"]["cider_d"]
    assert (row["n"], row["observations"]) == (6, 11)
    assert row["intervals"]["pearson"] is None  # of three reference sets
    every = found["pairs"]["cider_d"]["all"]
    assert {name: every[name] for name in ("n", "accuracy", "half", "ties", "clusters")} == {
        "n": 2,
        "accuracy": 0.5,
        "half": 0.5,
        "ties": 0.0,
        "clusters": 2,
    }
    mean = judge_metrics(JUDGEMENTS, given, scored, "mean")["rated"]["cider_d"]
    assert mean["observations"] == 6
    scores = scored.values["cider_d"][given.rated]
    expected = np.corrcoef(scores, [11 / 3, 4, 1, 1.5, 4, 3])[0, 1]
    assert mean["pearson"] == pytest.approx(expected, rel=1e-12)
    ratings = [4, 3, 4, 4, 1, 1, 1, 2, 4, 4, 3]
    flat = np.corrcoef(scores[[0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 5]], ratings)[0, 1]
    assert row["pearson"] == pytest.approx(flat, rel=1e-12)


@pytest.mark.slow
def test_meteor_of_each_line_is_what_it_is_without_the_others():
    """Its table is read while PTB tokenises, by the same Java."""
    given = scoring.collect_captions(JUDGEMENTS)
    with Jvm() as java:
        scored = scoring.score_captions(given, ["meteor"], "ptb", java)
        for place, (text, people) in zip(given.rated, LINES, strict=True):
            alone = references.prepare_references([people], "ptb", java)
            tokens = tokenize([text], "ptb", java)
            expected = postgen.score_tokens("meteor", tokens, alone, np.array([0]), java)
            assert scored.values["meteor"][place] == expected.corpus["meteor"]
