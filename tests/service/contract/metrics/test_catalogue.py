"""The catalogue of metrics, against the definitions and against the paper's published tables."""

import csv
import dataclasses
import gzip
import itertools
import time

import pytest

from helpers.contract_files import refused
from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue, families

TIERS = [
    ("sum", "mean", "median", "geomean", "max", "min"),
    ("sum", "mean", "median", "geomean", "max", "min", "join"),
    ("prob", "pplx", "count", "normcount"),
    ("none", "filter0", "prefix0", "miss0"),
]
POSTGEN = ("METEOR", "CIDEr", "SPICE", "WMD")


def test_the_672_pregen_metrics_are_every_combination_of_the_four_tiers():
    pregen = [name for name, spec in catalogue.METRICS.items() if spec.family == "pregen"]
    pregen = [name for name in pregen if name not in ("corpus_perplexity", "bits_per_byte")]
    assert len(pregen) == 672
    assert set(pregen) == {"_".join(parts) for parts in itertools.product(*TIERS)}


def test_perplexities_and_bits_are_defined_by_a_formula():
    formula = "exp(-mean over captions of (sum of log p / number of tokens of the caption))"
    assert formula in catalogue.find_metric("perplexity").definition
    for name, formula, needs in (
        ("corpus_perplexity", "exp(-sum of log p / number of tokens)", ("columns",)),
        ("bits_per_byte", "-sum of log2 p / number of bytes", ("columns", "references")),
    ):
        spec = catalogue.find_metric(name)
        assert formula in spec.definition
        assert (spec.family, spec.needs) == ("pregen", needs)


def test_every_row_is_whole_and_no_two_are_defined_alike():
    for name, spec in catalogue.METRICS.items():
        assert spec.name == name
        assert spec.definition[0].isupper()
        assert spec.definition.endswith(".")
        low, high = spec.range
        assert low in (0.0, 1.0) or name in ("bertscore", "refscore")
        assert low < high
        assert spec.needs
        assert spec.higher_is_better in (True, False, None)
    definitions = {spec.definition for spec in catalogue.METRICS.values()}
    assert len(definitions) == len(catalogue.METRICS)


def test_a_definition_reads_as_the_papers_does():
    assert catalogue.find_metric("mean_max_normcount_prefix0").definition == (
        "The mean over images of the maximum over their captions of the number, divided by the "
        "caption's length with END, of its longest prefix whose tokens all have rank 0."
    )


@pytest.mark.parametrize(
    ("name", "bounds", "higher_is_better"),
    [
        ("mean_max_normcount_prefix0", (0, 1), True),
        ("geomean_join_pplx_none", (1, catalogue.INFINITY), False),
        ("mean_join_normcount_filter0", (0, 1), True),
        ("mean_sum_normcount_prefix0", (0, catalogue.INFINITY), True),
        ("max_min_prob_none", (0, 1), True),
        ("min_min_count_none", (0, catalogue.INFINITY), None),
        ("corpus_perplexity", (1, catalogue.INFINITY), False),
        ("bits_per_byte", (0, catalogue.INFINITY), False),
    ],
)
def test_direction_and_range_follow_from_the_definition(name, bounds, higher_is_better):
    spec = catalogue.find_metric(name)
    assert (spec.range, spec.higher_is_better) == (bounds, higher_is_better)


def test_perplexity_is_an_alias_and_the_headline_names_exist():
    assert catalogue.find_metric("perplexity") is catalogue.find_metric("geomean_join_pplx_none")
    assert not catalogue.ALIASES.keys() & catalogue.METRICS.keys()
    for name in catalogue.HEADLINE:
        assert catalogue.find_metric(name).definition


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("perplexty", ("no metric is called 'perplexty'", "did you mean", "perplexity")),
        ("mean_max_normcont_prefix0", ("did you mean mean_max_normcount_prefix0",)),
        ("Perplexity", ("did you mean", "perplexity")),
        ("prefix0", ("did you mean mean_max_normcount_prefix0 or ",)),
        ("pplx", ("did you mean geomean_join_pplx_none",)),
        ("bleu", ("bleu is several metrics: bleu_1, bleu_2, bleu_3, bleu_4",)),
        ("", ("no metric is called ''",)),
    ],
)
def test_an_unknown_metric_is_refused_with_the_nearest_names(name, words):
    found = refused(lambda: catalogue.find_metric(name), UnknownMetric, *words)
    assert ("did you mean" in found.detail) == ("did you mean" in " ".join(words))


@pytest.mark.parametrize("family", ["nneval", "accord"])
def test_a_learned_metric_may_name_its_model(family):
    plain = catalogue.find_metric(family)
    for digits in ("0123456789ab", "f" * 64, f"sha256:{'f' * 64}"):
        name = f"{family}@{digits}"
        shown = catalogue.name_learned_metric(family, digits)
        assert catalogue.find_metric(name) == dataclasses.replace(plain, name=shown)
        assert catalogue.read_model_digits(name) == digits.removeprefix("sha256:")
        assert families.find_family_name(catalogue.find_metric_task(name)) == family
        assert catalogue.find_metric_task(name) == shown
    assert catalogue.read_model_digits(family) is None
    shown = catalogue.name_learned_metric(family, f"sha256:{'0123456789abcdef' * 4}")
    assert shown == f"{family}@0123456789ab"


def test_other_metrics_name_no_model():
    name = "bleu_4@0123456789ab"
    assert catalogue.read_model_digits(name) is None
    refused(lambda: catalogue.find_metric(name), UnknownMetric, "no metric is called")


@pytest.mark.parametrize("digits", ["", "0123456789a", "0123456789AB", "x" * 12, "0" * 65])
def test_what_can_be_no_digest_is_refused(digits):
    name = f"nneval@{digits}"
    refused(lambda: catalogue.find_metric(name), UnknownMetric, "the first 12 or more")


def test_a_name_of_30_mb_is_refused_at_once():
    name = "x" * 3 * 10**7
    start = time.process_time()
    refused(lambda: catalogue.find_metric(name), UnknownMetric)
    assert time.process_time() - start < 0.5


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def ours(published):
    """Their filter0 keeps the tokens of rank other than 0 (deploy/guide/pregen.md)."""
    return published.replace("filter0", "miss0")


@pytest.fixture(scope="module")
def correlations(data):
    """(post-gen metric, pre-gen row, the published line)."""
    return [
        (postgen, catalogue.METRICS[ours(row["pregen"])], row)
        for postgen in POSTGEN
        for row in rows(data / "pregen" / f"correlations_{postgen}.txt.gz")
    ]


def test_every_published_value_is_within_its_range(data):
    for row in rows(data / "pregen" / "data.txt.gz"):
        for published, value in row.items():
            spec = catalogue.METRICS.get(ours(published))
            if spec is not None and spec.family == "pregen":
                low, high = spec.range
                assert low <= float(value) <= high, (published, value)


def test_every_published_correlation_over_all_datasets_has_the_sign_of_our_direction(correlations):
    """Sums over a dataset left out: pooled, they count its images more than anything else."""
    checked = 0
    for postgen, spec, row in correlations:
        if spec.higher_is_better is not None and not spec.name.startswith("sum_"):
            signed = float(row["all_R"]) * (1 if spec.higher_is_better else -1)
            assert signed > -0.01, (postgen, spec.name, row["all_R"])
            checked += 1
    assert checked > 900


AGAINST = {"max_join_count_miss0", "max_max_count_miss0"}  # one caption's affair


def test_within_a_dataset_two_metrics_at_most_speak_against_our_direction(correlations):
    against = set()
    for _, spec, row in correlations:
        for dataset in ("mscoco", "flickr30k", "flickr8k"):
            higher = float(row[f"{dataset}_R"]) > 0
            significant = float(row[f"{dataset}_p"]) < 1e-3
            if significant and spec.higher_is_better not in (None, higher):
                against.add(spec.name)
    assert against == AGAINST
