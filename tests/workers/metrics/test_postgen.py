"""Oracle: pycocoevalcap's own scorers. More of them, and of METEOR's jar: tests/parity."""

import numpy as np
import pytest

from helpers import interruptions
from helpers.builders import captions_with_references, sentence
from oracles import coco_scorers
from service.contract.errors import MetricFailed, RunCanceled, UnknownMetric
from service.contract.metrics import catalogue, families
from workers.metrics import postgen, references
from workers.metrics.java.jvm import Jvm
from workers.metrics.object_lists import ObjectList
from workers.metrics.tokens import tokenize
from workers.metrics.vectors import word_vectors

WORDS = ["a", "the", "man", "dog", "cat", "runs", "running", "sits", "on", "grass", "big", "red"]
VECTORS = word_vectors.collect_vectors(
    "0123456789abcdef",
    np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32),
    b"".join(word_vectors.hash_word(word.encode()) for word in WORDS),
)
OBJECTS = ObjectList("0123456789abcdef", {("man",): 1, ("dog",): 2, ("big", "dog"): None}, 2)
# Families that score tokens beside references, with nothing that was trained.
SCORED = [
    name
    for name, row in families.FAMILIES.items()
    if "references" in row.needs
    and "encoder" not in row.needs
    and not (row.learned and row.learned.is_composed)
]
HOSTILE = [
    "", " ", "a\rb", "a\u2028b", "a\vb\fc\u0085d", "a\nb", "a ||| b", "a\tb", "🐕", "...",
    "a" * 10_000, "a man " * 600, "SCORE ||| a ||| b", "*NL*", "\0",
]  # fmt: skip


def _set(images, seed):
    captions, people = captions_with_references(WORDS, images, seed)
    captions[0] = ""
    return captions, people


@pytest.fixture(scope="module")
def prepared(jvm):
    captions, people = _set(60, 0)
    return captions, references.prepare_references(people, "none", jvm)


def _words(captions):
    """A fake parser, for the real one needs files that not every machine has: words are objects."""
    return {caption: [[word] for word in caption.split()] for caption in captions}


def _score(family, captions, refs, jvm, rows=None, **options):
    rows = np.arange(len(captions)) if rows is None else np.asarray(rows)
    given = {"parse": _words, "vectors": VECTORS, "objects": OBJECTS} | options
    tokens = tokenize(captions, refs.tokenizer, jvm)
    return postgen.score_tokens(family, tokens, refs, rows, jvm, **given)


@pytest.mark.parametrize("family", SCORED)
def test_a_part_is_scored_as_in_the_whole_and_parts_add_up(prepared, jvm, family):
    """In any order, several captions of an image, fewer captions than images."""
    captions, refs = prepared
    whole = _score(family, captions, refs, jvm)
    cuts = [np.array([5, 3, 5]), np.array([0]), np.arange(6, 60)[::-1], np.array([1, 2, 4])]
    parts = [_score(family, [captions[row] for row in cut], refs, jvm, cut) for cut in cuts]
    for cut, part in zip(cuts, parts, strict=True):
        for name, values in part.captions.items():
            np.testing.assert_array_equal(values, whole.captions[name][cut])
        assert part.signatures == whole.signatures
        chosen = {name: values[cut] for name, values in whole.statistics.items()}
        assert postgen.compute_corpus_scores(family, chosen) == part.corpus
    joined = {
        name: np.concatenate([part.statistics[name] for part in parts]) for name in whole.statistics
    }
    once = {name: values[1:] for name, values in joined.items()}  # 5 stands twice
    together = postgen.compute_corpus_scores(family, once)
    assert together == pytest.approx(whole.corpus, rel=1e-14)


@pytest.mark.parametrize("family", ["cider", "cider_d"])
def test_on_request_a_subset_gets_what_it_alone_would_get_and_says_so(prepared, jvm, family):
    captions, refs = prepared
    rows = np.array([5, 3, 20, 41, 59, 11, 30])
    part, people = [captions[row] for row in rows], [refs.captions[row] for row in rows]
    found = _score(family, part, refs, jvm, rows, idf="subset")
    expected, each = coco_scorers.each(part, people)[family]
    assert found.corpus[family] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found.captions[family], each, rtol=1e-12, atol=0)
    assert "|df:subset(n=7)|" in found.signatures[family]
    whole = _score(family, captions, refs, jvm, idf="subset")
    np.testing.assert_array_equal(
        whole.captions[family], _score(family, captions, refs, jvm).captions[family]
    )


def test_cider_of_one_image_is_0_by_construction(jvm):
    refs = references.prepare_references([["a cat", "the cat"]], "ptb", jvm)
    assert _score("cider_d", ["a cat"], refs, jvm).corpus == {"cider_d": 0.0}


@pytest.mark.parametrize("family", SCORED)
def test_hostile_captions_move_no_other_captions_score(jvm, family):
    people = [["A man runs.", "a big man"], ["the dog", "A brown dog sits"]] * len(HOSTILE)
    refs = references.prepare_references(people, "ptb", jvm)
    plain = [text for _ in HOSTILE for text in ("a man", "the dog sits on grass")]
    mixed = [text for odd in HOSTILE for text in (odd, "the dog sits on grass")]
    expected, found = (_score(family, texts, refs, jvm) for texts in (plain, mixed))
    for name in expected.captions:
        np.testing.assert_array_equal(found.captions[name][1::2], expected.captions[name][1::2])
        if not name.endswith("_distance"):  # there is none to a caption without words
            assert np.isfinite(found.captions[name]).all()
        assert np.isfinite(found.corpus[name])


@pytest.mark.parametrize("family", SCORED)
def test_hostile_references_move_no_other_captions_score(jvm, family):
    people = [[text, "a man"] for odd in HOSTILE for text in (odd, "A brown dog sits")]
    captions = ["a man", "the dog sits"] * len(HOSTILE)
    for tokenizer in ("ptb", "none"):
        refs = references.prepare_references(people, tokenizer, jvm)
        found = _score(family, captions, refs, jvm)
        for values in found.captions.values():
            assert len(set(values[1::2].tolist())) == 1


@pytest.mark.parametrize("family", SCORED)
def test_a_caption_that_is_a_reference_scores_high_and_an_empty_one_0(prepared, jvm, family):
    _, refs = prepared
    copied = [image[0] for image in refs.captions]
    rows = [row for row, image in enumerate(refs.captions) if len(image[0].split()) > 3]
    perfect = _score(family, [copied[row] for row in rows], refs, jvm, rows)
    nothing = _score(family, [""] * 5, refs, jvm, range(5))
    for name, value in perfect.corpus.items():
        low, high = catalogue.find_metric(name).range
        if catalogue.find_metric(name).higher_is_better is None:
            assert low <= value <= high
            continue
        if catalogue.find_metric(name).higher_is_better is False:
            of_nothing = high if name.endswith("_distance") else 0
            assert (value, nothing.corpus[name]) == (0, of_nothing)
            continue
        assert value > {"cider_d": 2, "cider": 2, "spider": 1, "spice": 0.4, "accord": 0.98}.get(
            name, 0.99 * high
        )
        assert low <= nothing.corpus[name] <= 1e-5
        values = perfect.captions[name]
        assert low <= values.min() <= values.max() <= high * (1 + 1e-12)


def test_meteors_statistics_give_the_jars_own_score_of_every_caption(prepared, jvm):
    captions, refs = prepared
    found = _score("meteor", captions, refs, jvm)
    for place, score in enumerate(found.captions["meteor"].tolist()):
        one = {name: values[[place]] for name, values in found.statistics.items()}
        assert postgen.compute_corpus_scores("meteor", one) == {"meteor": score}
    assert 0 < found.captions["meteor"].max() == 1.0


TWISTED = [
    "the man 's dog", "3 1/2 dogs", "a man , a dog", "u.s. dogs ...", "half-time", "a &amp; b",
    "l'été", "$ 5 , 000", "no. 5", "“quoted”", "a ||| b", "x" * 3000 + " dog",
]  # fmt: skip


def test_plain_captions_need_no_normalising_and_others_get_it(jvm):
    """Each as a caption and among references beside the jar's own text interface, which normalises
    all: of many captions at once and of one at a time.
    """
    rng = np.random.default_rng(0)
    captions = [*TWISTED, *(sentence(rng, WORDS) for _ in range(30))]
    people = [[*rng.choice(captions, 3)] for _ in captions]
    refs = references.prepare_references(people, "none", jvm)
    together = _score("meteor", captions, refs, jvm)
    spelled = [f"{caption} " for caption in captions]  # a blank more: plain no longer
    assert jvm.call("meteor", list(zip(spelled, people, strict=True))) == [
        [score, statistics]
        for score, statistics in jvm.call("meteor", list(zip(captions, people, strict=True)))
    ]
    for row, score in enumerate(together.captions["meteor"].tolist()):
        alone = _score("meteor", [captions[row]], refs, jvm, [row])
        assert alone.captions["meteor"].tolist() == [score]


@pytest.mark.parametrize("family", SCORED)
def test_what_is_written_is_read(prepared, jvm, family, tmp_path):
    captions, refs = prepared
    scores = _score(family, captions, refs, jvm)
    postgen.write_scores(tmp_path / "result", scores)
    found = postgen.read_scores(tmp_path / "result")
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
    assert (found.family, found.corpus) == (family, scores.corpus)
    assert found.signatures == scores.signatures
    assert postgen.compute_corpus_scores(family, found.statistics) == found.corpus
    for name, values in scores.captions.items():
        np.testing.assert_array_equal(found.captions[name], values)
    postgen.write_scores(tmp_path / "again", found)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "result").read_bytes()


@pytest.mark.parametrize("family", SCORED)
def test_progress_is_told_and_may_end_it(jvm, family):
    captions, people = _set(600, 0)
    refs = references.prepare_references(people, "none", jvm)
    told = []
    _score(family, captions, refs, jvm, progress=lambda *at: told.append(at))
    assert told[-1] == (600, 600)
    assert len(told) > 1
    with Jvm() as cold, pytest.raises(RunCanceled):
        _score(family, captions, refs, cold, progress=interruptions.ends)


@pytest.mark.parametrize(
    ("captions", "rows", "complaint"),
    [
        ([], np.arange(0), "at least one caption"),
        (["a", "b"], np.arange(1), r"each of 2 captions, found int64 \(1,\)"),
        (["a"], np.array([0.0]), "found float64"),
        (["a"], np.array([[0]]), r"\(1, 1\)"),
        (["a"], np.array([60]), "rows of 60 images, found 60 to 60"),
        (["a"], np.array([-1]), "rows of 60 images, found -1 to -1"),
    ],
)
def test_captions_and_rows_that_do_not_fit_are_refused(prepared, jvm, captions, rows, complaint):
    with pytest.raises(MetricFailed, match=complaint):
        postgen.score_tokens("bleu", captions, prepared[1], rows, jvm)


def test_the_families_compute_the_metrics_of_the_catalogue(prepared, jvm):
    captions, refs = prepared
    others = {"bertscore", "refscore", "accord_large", "nneval", *catalogue.GROUPS["variety"]}
    computed = set()  # from tokens and references; the others are not
    for family in SCORED:
        found = _score(family, captions, refs, jvm)
        computed |= set(found.corpus)
        for name in found.corpus:
            assert catalogue.find_metric_task(name) == family
            assert name in found.captions
    assert computed | others == set(catalogue.POSTGEN)
    with pytest.raises(UnknownMetric, match="bleu, rouge_l, cider_d, cider, meteor"):
        _score("no_such", captions, refs, jvm)
