"""Published SPICE of captioners, and what SPICE's own Java finds in people's captions."""

import hashlib
import json

import numpy as np
import pytest

from parity import systems, tables
from workers.metrics import postgen, references

# Of the tuples of Flickr8k's first 1,000 different references, as a CoreNLP pipeline and the jar's
# own parser, driven independently, found them.
THOUSAND = "178adba5155edaaa9c7b105c0d18d90ee3ab51326c5eb207849b93652300b1a7"

pytestmark = pytest.mark.slow
SYSTEMS = {
    "flickr8k": ("init_1", "merge_3", "par_2"),
    "flickr30k": ("init_1",),
    "mscoco": ("init_1",),
}


def test_the_tuples_of_1000_captions_are_those_seen_before(data, remembering):
    people = systems.references(data, "flickr8k")
    texts = list(dict.fromkeys(text for image in people for text in image))[:1000]
    found = remembering.parse(texts)
    content = json.dumps([found[text] for text in texts])
    assert hashlib.sha256(content.encode()).hexdigest() == THOUSAND


@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_systems_score_as_published(data, jvm, remembering, dataset, capsys):
    """Systems of a set share its references, which are parsed once: COCO's take half an hour."""
    refs = references.prepare_references(systems.references(data, dataset), "none", jvm)
    places, rows = np.arange(refs.images), []
    for name in SYSTEMS[dataset]:
        system = systems.system(data, dataset, name)
        scores = postgen.score_tokens(
            "spice", system.captions, refs, places, jvm, parse=remembering.parse
        )
        found = scores.corpus["spice"]
        published = float(system.pregen["spice"])
        assert found == pytest.approx(published, abs=2e-5)
        rows.append([dataset, name, f"{published:.7f}", f"{found - published:+.1e}"])
    tables.tell(rows, capsys)
