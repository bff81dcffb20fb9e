"""The published figures of the probes: `probes.py` has them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parity import probes, systems, tables
from workers.bench.probing.inputs import ProbeMaterial
from workers.metrics.java.jvm import Jvm

PAGE = Path(__file__).with_name("PROBES.md")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def java():
    """Started where METEOR is asked for."""
    with Jvm() as jvm:
        yield jvm


@pytest.fixture(scope="module")
def coco(data):
    return ProbeMaterial("none", systems.references(data, "mscoco"))


@pytest.fixture(scope="module")
def coco_rows(coco, java):
    return probes.of_coco(coco, java)


@pytest.fixture(scope="module")
def flickr_rows(data, java):
    return {
        tokenizer: probes.of_flickr30k(probes.flickr30k(data, tokenizer, java), java)
        for tokenizer in ("karpathy", "regex")
    }


@pytest.mark.parametrize("name", [name for name in probes.PUBLISHED if name != "random"])
def test_rows_of_coco_are_as_published(coco_rows, name):
    """As the figures are printed: .06 where they are points, .001 for CIDEr-D (RvR's: .01)."""
    row = coco_rows[name]
    digits = 0.006 if name == "RvR" else 0.001
    for metric, value in probes.PUBLISHED[name].items():
        tolerance = digits if metric == "cider_d" else 0.06
        found = probes.points(metric, row.scores[metric])
        assert found == pytest.approx(value, abs=tolerance), metric
    if name in probes.SHARES:
        assert 100 * row.share == pytest.approx(probes.SHARES[name], abs=0.006)


def test_people_vary_as_published(coco_rows):
    for metric, value in probes.DEVIATIONS.items():
        found = probes.points(metric, coco_rows["RvR"].sd[metric])
        assert found == pytest.approx(value, abs=0.005 if metric == "cider_d" else 0.05)


def test_words_at_random_cost_less_bleu_and_rouge_than_one_frequent_word_and_more_meteor(coco_rows):
    """The paper's draw is not described; this is what it finds, with every seed."""
    drawn, word = coco_rows["random"], coco_rows["a"]
    assert drawn.share == word.share
    for metric, side in (("bleu_4", 1), ("rouge_l", 1), ("meteor", -1)):
        assert side * (drawn.scores[metric] - word.scores[metric]) > 3 * drawn.sd[metric]


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


def test_the_page_says_what_is_computed(data, java, coco, coco_rows, flickr_rows, capsys):
    cells = probes.cells_of_coco(coco_rows)
    for rows in (probes.of_systems(data, coco, java), probes.of_german(data, java)):
        cells += probes.cells_of_names(rows)
    for rows in flickr_rows.values():
        cells += probes.cells_of_flickr30k(rows)
    tables.tell(cells, capsys, PAGE)
