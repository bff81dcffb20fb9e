"""The published figures of the probes: `probes.py` has them."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from oracles import coco_scorers
from parity import probes
from workers.bench.probing.inputs import ProbeArguments
from workers.metrics.java.jvm import Jvm

WITHOUT_JAVA = ("bleu_4", "rouge_l", "cider_d")


@pytest.fixture(scope="module")
def java():
    """Started where METEOR is asked for."""
    with Jvm() as jvm:
        yield jvm


@pytest.fixture(scope="module")
def coco(data):
    return probes.coco(data)


@pytest.fixture(scope="module")
def coco_rows(coco, java):
    return probes.of_coco(coco, java)


@pytest.fixture(scope="module")
def system_rows(data, coco, java):
    return probes.of_systems(data, coco, java)


@pytest.fixture(scope="module")
def german_rows(data, java):
    return probes.of_german(data, java)


@pytest.fixture(scope="module")
def flickr_rows(data, java):
    return {
        tokenizer: probes.of_flickr30k(probes.flickr30k(data, tokenizer, java), java)
        for tokenizer in ("karpathy", "regex")
    }


def _agrees(row):
    """As the figures are printed: .06 where they are points, .001 for CIDEr-D (RvR's: .01)."""
    digits = 0.006 if row.name == "RvR" else 0.001
    for metric, value in probes.PUBLISHED[row.name].items():
        if metric in row.scores:
            found = probes.points(metric, row.scores[metric])
            tolerance = digits if metric == "cider_d" else 0.06
            assert found == pytest.approx(value, abs=tolerance), (row.name, metric)
    if row.name in probes.SHARES:
        assert 100 * row.share == pytest.approx(probes.SHARES[row.name], abs=0.006)


def test_frequent_words_and_a_swap_lose_what_is_published(coco, java):
    """All but METEOR, which takes minutes: the slow tests have it."""
    material, score = coco, probes.scoring.make_scorer(WITHOUT_JAVA, java)
    rows = probes.probes.run_probe(
        "frequent", material, score, ProbeArguments(frequent=["people", "a"])
    )
    rows += probes.probes.run_probe("swap", material, score)
    assert [row.name for row in rows] == [
        *("R1 unchanged", "people", "a"),
        *("R1 unchanged", "woman -> man"),
    ]
    for row in rows:
        _agrees(row)
    assert java.pid is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in probes.PUBLISHED if name != "random"])
def test_rows_of_coco_are_as_published(coco_rows, name):
    _agrees(coco_rows[name])


@pytest.mark.slow
def test_people_vary_as_published(coco_rows):
    for metric, value in probes.DEVIATIONS.items():
        found = probes.points(metric, coco_rows["RvR"].sd[metric])
        assert found == pytest.approx(value, abs=0.005 if metric == "cider_d" else 0.05)


@pytest.mark.slow
def test_words_at_random_cost_less_bleu_and_rouge_than_one_frequent_word_and_more_meteor(coco_rows):
    """The paper's draw is not described; this is what it finds, with every seed."""
    drawn, word = coco_rows["random"], coco_rows["a"]
    assert drawn.share == word.share
    for metric, side in (("bleu_4", 1), ("rouge_l", 1), ("meteor", -1)):
        assert side * (drawn.scores[metric] - word.scores[metric]) > 3 * drawn.sd[metric]


@pytest.mark.slow
def test_rare_words_hardly_matter(flickr_rows):
    """Of 19.96 BLEU points the paper loses .16 on COCO at T = 30, with 1.44 % of tokens."""
    for rows in flickr_rows.values():
        unchanged, *rare = (row for row in rows if row.probe == "rare")
        assert [row.name for row in rare] == ["T = 30", "T = 20", "T = 10", "T = 5"]
        for more, fewer in pairwise(rare):
            assert more.share > fewer.share > 0
            for metric in probes.METRICS:
                assert unchanged.scores[metric] > fewer.scores[metric] > more.scores[metric]
        assert rare[0].drop["bleu_4"] < 0.04 * unchanged.scores["bleu_4"]


@pytest.mark.slow
def test_the_published_sentence_has_its_published_scores(flickr_rows):
    (found,) = [row for row in flickr_rows["regex"] if row.name == "single sentence"]
    assert found.text == probes.WINNER
    for metric, value in probes.SINGLE.items():
        tolerance = 0.005 if metric == "cider_d" else 0.06
        assert probes.points(metric, found.scores[metric]) == pytest.approx(value, abs=tolerance)


SEARCH = """
import json, re, sys, time
from pathlib import Path
from parity import probes
from workers.metrics.java.jvm import Jvm
from workers.bench.probing.constant_search import find_best_sentence
material = probes.flickr30k(Path(sys.argv[1]), sys.argv[2], Jvm())
began = time.perf_counter()
found = find_best_sentence(material.training, material.complete)
took = time.perf_counter() - began
(peak,) = re.findall(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())  # since exec
print(json.dumps([len(material.training), found.text, found.score, took, int(peak) / 1e6]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokenizer", "text", "bleu"),
    [
        ("regex", probes.WINNER, 0.1216),
        ("karpathy", "a man in a blue shirt sitting", 0.1281),
    ],
)
def test_both_winners_are_found_among_all_sentences_in_time_and_memory(data, tokenizer, text, bleu):
    """Required: 60 s and 2 GB; reached: 2 to 3 s and .3 GB, the data included."""
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SEARCH, str(data), tokenizer]
    output = subprocess.run(command, capture_output=True, check=True, env=path).stdout
    sentences, found, score, seconds, gigabytes = json.loads(output)
    print(f"{sentences} sentences, 1,000 images: {seconds:.1f} s, {gigabytes:.2f} GB")
    assert (sentences, found, round(score, 4)) == (145_000, text, bleu)
    assert seconds < 60
    assert gigabytes < 2


@pytest.mark.slow
def test_systems_beat_people_in_bleu_and_not_in_meteor(system_rows):
    """What the paper finds of another system; of ours, all twelve."""
    people, *captioners = system_rows.values()
    assert len(captioners) == 12
    for system in captioners:
        assert system.drop["bleu_4"] < -3 * people.sd["bleu_4"]
        assert system.drop["meteor"] > 3 * people.sd["meteor"]


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["regex", "character", "none"])
def test_german_people_are_scored_as_by_pycocoevalcap(data, java, german_rows, tokenizer):
    people = probes.german(data, tokenizer, java).references
    turns = [
        coco_scorers.scores(
            [image[column] for image in people],
            [[*image[:column], *image[column + 1 :]] for image in people],
            WITHOUT_JAVA,
        )
        for column in range(5)
    ]
    for metric in WITHOUT_JAVA:
        values = [turn[metric] for turn in turns]
        assert german_rows[tokenizer].scores[metric] == pytest.approx(np.mean(values), abs=1e-12)
        assert german_rows[tokenizer].sd[metric] == pytest.approx(np.std(values), abs=1e-12)


@pytest.mark.slow
def test_the_table_that_is_kept_is_what_is_computed(
    coco_rows, system_rows, flickr_rows, german_rows
):
    found = probes.text(coco_rows, system_rows, flickr_rows, german_rows)
    print(found)
    assert found == probes.FILE.read_text("utf-8")
