"""Published SPICE of captioners, and what SPICE's own Java finds in people's captions."""

import hashlib
import json

import numpy as np
import pytest

from parity import systems, tables
from workers.metrics import postgen, references

# True positives, false positives, false negatives of the jar's own `Evaluation`, for init 1's first
# captions on Flickr8k.
COUNTS = [(3, 1, 13), (4, 4, 18), (1, 8, 28), (1, 7, 29), (2, 4, 28), (3, 1, 21), (1, 6, 33)]

# Of the tuples of Flickr8k's first 1,000 different references, as a CoreNLP pipeline and the jar's
# own parser, driven independently, found them; and of 80 among them: those of the images above,
# and the shortest ones.
THOUSAND = "178adba5155edaaa9c7b105c0d18d90ee3ab51326c5eb207849b93652300b1a7"
EIGHTY = "49cf24c80f67f49fac2e9153959a9b8cfba3e9bd3e43542028cf8cb15712d7f7"

SYSTEMS = {
    "flickr8k": ("init_1", "merge_3", "par_2"),
    "flickr30k": ("init_1",),
    "mscoco": ("init_1",),
}


def _score(system, people, jvm, parser, images):
    refs = references.prepare_references(people[:images], "none", jvm)
    captions = system.captions[:images]
    rows = np.arange(images)
    return postgen.score_tokens("spice", captions, refs, rows, jvm, parse=parser.parse)


def _thousand(data):
    people = systems.references(data, "flickr8k")
    return list(dict.fromkeys(text for image in people for text in image))[:1000]


def _digest(parser, texts):
    found = parser.parse(texts)
    content = json.dumps([found[text] for text in texts])
    return hashlib.sha256(content.encode()).hexdigest()


def _eighty(data):
    texts = _thousand(data)
    images = 5 * len(COUNTS)
    return texts[:images] + sorted(texts[images:], key=len)[: 80 - images]


@pytest.mark.slow  # the counts of the jar, below, are of tuples too
def test_the_tuples_of_80_captions_are_those_seen_before(data, remembering):
    assert _digest(remembering, _eighty(data)) == EIGHTY


@pytest.mark.slow
def test_the_tuples_of_1000_captions_are_those_seen_before(data, remembering):
    assert _digest(remembering, _thousand(data)) == THOUSAND


@pytest.mark.slow  # like workers/metrics/test_scene_graphs.py, which is not
def test_an_images_counts_are_those_of_the_jar(data, jvm, remembering):
    people = systems.references(data, "flickr8k")
    system = systems.system(data, "flickr8k", "init_1")
    found = _score(system, people, jvm, remembering, len(COUNTS)).statistics
    names = ("true_positives", "false_positives", "false_negatives")
    assert list(zip(*(found[name] for name in names), strict=True)) == COUNTS


@pytest.mark.slow
@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_systems_score_as_published(data, jvm, remembering, dataset, capsys):
    """Systems of a set share its references, which are parsed once: COCO's take half an hour."""
    people = systems.references(data, dataset)
    rows = []
    for name in SYSTEMS[dataset]:
        system = systems.system(data, dataset, name)
        found = _score(system, people, jvm, remembering, len(people)).corpus["spice"]
        published = float(system.pregen["spice"])
        assert found == pytest.approx(published, abs=2e-5)
        rows.append([dataset, name, f"{published:.7f}", f"{found - published:+.1e}"])
    tables.tell(rows, capsys)
