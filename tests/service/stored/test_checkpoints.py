"""What is said of a stored checkpoint, whatever else is stored."""

import time

import pytest

from helpers import stored_records
from service.contract import limits
from service.contract.errors import LimitReached
from service.contract.plan import planning
from service.stored import checkpoints

ENCODER = {"name": "vgg", "digest": "sha256:1"}
ONE, TWO = f"sha256:{2:064}", f"sha256:{3:064}"
FACTS = {
    "architecture": "merge",
    "config": {"cell": "gru", "size": 4, "feature_size": 5},
    "parameters": 9,
    "vocabulary_size": 3,
    "encoder": ENCODER,
}


@pytest.mark.long
def test_datasets_on_which_it_was_not_scored_cost_nothing(on_either):
    """There may be more splits than a query may have names: 32,766 with SQLite, 65,535 with
    PostgreSQL.
    """
    splits = {f"split {at}": {"images": 1, "references": 1} for at in range(70_000)}
    stored_records.add_version(
        on_either, "many", f"sha256:{1:064}", {"splits": splits, "features": None}
    )
    checkpoints.add(on_either, ONE, 10, FACTS)
    began = time.process_time()
    found = checkpoints.get(stored_records.parts_on(on_either), ONE)
    assert (found.encoder.name, found.cached) == ("vgg", ())
    assert time.process_time() - began < 0.3


def test_a_bundle_is_converting_until_its_task_has_verified_it(on_either):
    parts = stored_records.parts_on(on_either)
    facts = {**FACTS, "config": None, "format": "onnx", "architecture": "onnx", "feature_size": 5}
    checkpoints.add(on_either, TWO, 10, {**facts, "inputs": "features", "units": "words"})
    checkpoints.prepare_checkpoint(parts, TWO)
    assert checkpoints.get(parts, TWO).state == "converting"
    assert checkpoints.use_checkpoint(parts, TWO).verified == planning.plan_conversion(TWO)


def test_a_team_has_some_bundles_at_once_that_wait_to_be_verified(on_either, monkeypatch):
    """A bundle that waits already is no further one, and another team has room of its own."""
    monkeypatch.setattr(limits, "CONVERSIONS", 1)
    parts = stored_records.parts_on(on_either)
    facts = {**FACTS, "config": None, "format": "onnx", "architecture": "onnx", "feature_size": 5}
    for digest in (ONE, TWO):
        checkpoints.add(on_either, digest, 10, {**facts, "inputs": "features", "units": "words"})
    for _ in range(2):
        checkpoints.prepare_checkpoint(parts, ONE, "red/key")
    with pytest.raises(LimitReached, match="1 checkpoints that you have sent are not verified yet"):
        checkpoints.prepare_checkpoint(parts, TWO, "red/project/of a job")
    checkpoints.prepare_checkpoint(parts, TWO, "redder/key")
    assert checkpoints.get(parts, TWO).state == "converting"
