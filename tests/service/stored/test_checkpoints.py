"""What is said of a stored checkpoint, whatever else is stored."""

import time

import pytest

import stored_versions
from service.stored import checkpoints
from service.works.records import Records

ENCODER = {"name": "vgg", "digest": "sha256:1"}
ONE = f"sha256:{2:064}"
FACTS = {
    "architecture": "merge",
    "config": {"cell": "gru", "size": 4, "feature_size": 5},
    "parameters": 9,
    "vocabulary_size": 3,
    "encoder": ENCODER,
}


@pytest.mark.long
def test_datasets_on_which_it_was_not_scored_cost_nothing(engine):
    """Of version 0.1.0 there may be one with 300,000 splits: more names than a query may have,
    which are 32,766 with SQLite and 65,535 with PostgreSQL.
    """
    records = Records(engine)
    splits = {f"split {at}": {"images": 1, "references": 1} for at in range(70_000)}
    stored_versions.add(records, "many", f"sha256:{1:064}", {"splits": splits, "features": None})
    checkpoints.add(records, ONE, 10, FACTS)
    began = time.process_time()
    found = checkpoints.get(records, ONE)
    assert (found.encoder.name, found.cached) == ("vgg", [])
    assert time.process_time() - began < 0.3
