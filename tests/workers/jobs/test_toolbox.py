"""What stays warm between tasks is found by digest, and only the last."""

import json

import pytest

from helpers import object_list_files
from service.contract.assets import AssetFolders
from service.contract.errors import MetricUnavailable
from workers.jobs.toolbox import Toolbox
from workers.metrics import references
from workers.offline import assets


def test_references_and_tokens_are_read_once_for_all_metrics_of_an_evaluation(tmp_path):
    toolbox = Toolbox("cpu", AssetFolders(tmp_path))
    prepared = references.prepare_references([["a cat"], ["a dog"]], "none", toolbox.jvm())
    references.write_references(tmp_path / "references", prepared)
    captions = tmp_path / "captions"
    captions.write_text(json.dumps([[1, "a  cat"], [0, "dog"]]), "utf-8")
    found = toolbox.references("sha256:r", tmp_path / "references")
    tokens = toolbox.tokens("sha256:c", captions, "none")
    assert found.captions == prepared.captions
    assert tokens == ([1, 0], ["a cat", "dog"])
    (tmp_path / "references").unlink()
    captions.write_text(json.dumps([[0, "A cat."]]), "utf-8")
    assert toolbox.references("sha256:r", tmp_path / "references") is found
    assert toolbox.tokens("sha256:c", captions, "none") == tokens
    assert toolbox.tokens("sha256:d", captions, "none") == ([0], ["A cat."])
    assert toolbox.tokens("sha256:d", captions, "regex") == ([0], ["a cat ."])


def test_a_list_of_objects_is_the_one_that_the_service_planned_with(tmp_path):
    toolbox, places = Toolbox("cpu", AssetFolders(tmp_path)), AssetFolders(tmp_path)
    given = object_list_files.write(tmp_path / "objects.txt", "dog\n")
    planned = assets.add_asset("objects", given, places)["objects"].sha256
    found = toolbox.bring("chair", {"objects": planned})["objects"]
    assert toolbox.bring("chair", {"objects": planned})["objects"] is found
    assets.add_asset("objects", object_list_files.write(given, "cat\n"), places)
    with pytest.raises(MetricUnavailable, match=f"the service was given {planned[:12]}"):
        toolbox.bring("chair", {"objects": planned})
