"""The correlation study of the pre-gen paper: our study of its authors' own table, beside the
figures that they published, and our strata of their systems beside the table's.

The table's `…_filter0` columns hold what we call `…_miss0` (deploy/guide/pregen.md says why).
"""

import csv

import numpy as np
import pytest

from parity import systems
from service.contract.metrics import catalogue
from workers.bench.study import correlations, strata, tables
from workers.inference.columns import ProbabilityColumns
from workers.metrics import postgen, references

POSTGEN = {"METEOR": "meteor", "CIDEr": "cider_d", "SPICE": "spice", "WMD": "wmd"}
BEST = "mean_max_normcount_prefix0"
NEAR = 2e-3  # a caption that is as good as another may be in the next stratum


@pytest.fixture(scope="module")
def rows(data):
    return tables.read_rows_table(data / "pregen" / "data.txt.gz")


@pytest.fixture(scope="module")
def study(rows):
    return correlations.correlate_scores(rows)


def _by_name(study, metric):
    return {each["metric"]: each for each in study["metrics"][metric]["correlations"]}


def test_the_table_holds_the_papers_504_metrics(rows):
    ours = {name for name in catalogue.PREGEN if not name.endswith("filter0")}
    assert ours == set(rows.pregen)
    assert (len(ours), len(rows)) == (504, 540)


def test_361_metrics_remain(study):
    assert study["pregen"]["remain"] == 361
    assert (study["models"], study["idf"]) == (36, "stratum")


@pytest.mark.parametrize("postgen", POSTGEN)
def test_every_published_correlation_is_reproduced(data, study, postgen):
    found = _by_name(study, POSTGEN[postgen])
    path = data / "pregen" / f"correlations_{postgen}.txt.gz"
    published = list(csv.DictReader(systems.lines(path), delimiter="\t"))
    assert {row["pregen"].replace("filter0", "miss0") for row in published} == set(found)
    for row in published:
        own = found[row["pregen"].replace("filter0", "miss0")]
        for part, ours in {"all": own, **own["datasets"]}.items():
            assert ours["r2"] == pytest.approx(float(row[f"{part}_R^2"]), abs=1e-9), (row, part)
            assert ours["r"] == pytest.approx(float(row[f"{part}_R"]), abs=1e-9)
            p = float(row[f"{part}_p"])  # of 5e-324 and the like few digits are left
            assert ours["p"] == pytest.approx(p, rel=1e-6, abs=1e-300)


def test_the_table_is_about_images_and_hardly_about_models(study):
    found = study["metrics"]["cider_d"]
    assert round(100 * found["of_images"], 2) == 99.84
    ranks = _by_name(study, "cider_d")[BEST]["datasets"]
    told = {name: (round(own["spearman"], 2), own["models"]) for name, own in ranks.items()}
    assert told == {"mscoco": (0.66, 12), "flickr30k": (-0.65, 12), "flickr8k": (0.08, 12)}


def test_our_filter0_is_not_theirs(rows):
    """By the paper's wording count_filter0 would be at least count_prefix0; theirs is not."""
    fewer = rows.pregen["sum_sum_count_miss0"] < rows.pregen["sum_sum_count_none"]
    assert fewer.all()
    kept = rows.pregen["sum_sum_count_none"] - rows.pregen["sum_sum_count_miss0"]
    assert (kept >= rows.pregen["sum_sum_count_prefix0"]).all()


def _strata_of(captions, people, jvm, families):
    """Their columns, of which these scores say nothing, are made up."""
    images = np.arange(people.images)
    offsets = np.arange(people.images + 1)
    hits, none = np.zeros(people.images, np.uint16), np.zeros((people.images, 0), np.float32)
    columns = ProbabilityColumns(
        np.zeros(people.images, np.float32), hits, offsets, offsets, none, none
    )

    def score(family, places, idf="dataset"):
        own = [captions[place] for place in places]
        return postgen.score_tokens(family, own, people, places, jvm, idf=idf)

    scores = {family: score(family, images) for family in families}
    model = strata.StratifiedModel(columns, scores, lambda *asked: score(*asked, "subset").corpus)
    return strata.make_stratum_rows(model, "", "")


@pytest.mark.parametrize(
    ("dataset", "names", "families"),
    [
        pytest.param("flickr8k", ["merge_1"], ("cider_d",), id="one of them"),
        pytest.param(
            "flickr8k", ["init_1"], ("cider_d", "meteor"), id="METEOR", marks=pytest.mark.slow
        ),
        *(
            pytest.param(dataset, systems.NAMES, ("cider_d",), id=dataset, marks=pytest.mark.slow)
            for dataset in systems.DATASETS
        ),
    ],
)
def test_strata_of_their_captions_score_as_in_the_table(data, jvm, rows, dataset, names, families):
    people = references.prepare_references(systems.references(data, dataset), "none", jvm)
    for name in names:
        captions = systems.system(data, dataset, name).captions
        found = _strata_of(captions, people, jvm, families)
        there = {
            (rows.strata[at], rows.stratum[at]): at
            for at in range(len(rows))
            if (rows.datasets[at], rows.models[at]) == (dataset, name)
        }
        places = [there[own] for own in zip(found.strata, found.stratum, strict=True)]
        assert len(places) == 15
        for metric in families:
            published = rows.postgen[metric][places]
            assert found.postgen[metric] == pytest.approx(published, abs=NEAR), (name, metric)
