"""Adapters are bound to a registered base: by their own name for it, or by the one in a request."""

import shutil

import pytest

from helpers import adapter_folders, stored_records, vision_language_folders
from service.contract.assets import AssetFolders
from service.contract.errors import InvalidRequest
from service.contract.formats import model_formats
from service.contract.plan import planning
from service.engine.service_parts import ServiceParts
from service.stored import checkpoints
from workers.offline import assets

DIGEST = f"sha256:{4:064}"


@pytest.fixture
def folder(tmp_path):
    return vision_language_folders.save_model(tmp_path / "base", "llava").folder


@pytest.fixture
def parts(records, tmp_path):
    """A service with an adapter of `acme/tiny`, and no base."""
    pairs = adapter_folders.make_pairs({"lm_head": (348, 24)})
    facts = model_formats.read_package_facts(adapter_folders.write(tmp_path / "a", pairs))
    checkpoints.add(records, DIGEST, 10, facts)
    on = stored_records.parts_on(records)
    return ServiceParts(records, on.blobs, on.queue, AssetFolders(tmp_path / "home"))


def test_without_its_base_it_is_refused_with_the_command_that_registers_one(parts, folder):
    checkpoints.prepare_checkpoint(parts, DIGEST)
    found = checkpoints.get(parts, DIGEST)
    assert (found.format, found.state, found.problem.code) == ("adapter", "invalid", "unavailable")
    assert (found.base.name, found.base.digest, found.vocabulary_size) == ("acme/tiny", None, None)
    assets.add_base("other", folder, parts.places)
    for asked, where in ((None, "/checkpoint"), ("nothing", "/base")):
        with pytest.raises(InvalidRequest, match=r"registered: other\. .*add base NAME") as refused:
            checkpoints.use_checkpoint(parts, DIGEST, asked)
        assert refused.value.pointer == where
    assert checkpoints.use_checkpoint(parts, DIGEST, "other").description["vocabulary_size"] == 348


def test_another_folder_as_its_base_gives_other_tasks(parts, folder, tmp_path):
    base = assets.add_base("tiny", folder, parts.places)["base tiny"]
    used = checkpoints.use_checkpoint(parts, DIGEST)
    assert used.verified == planning.plan_conversion(DIGEST, base=f"sha256:{base.sha256}")
    assert used.description["base"] == {"name": "tiny", "digest": f"sha256:{base.sha256}"}
    assert (used.description["format"], used.description["units"]) == ("adapter", "pieces")
    copy = shutil.copytree(folder, tmp_path / "copy")
    assets.add_base("copy", copy, parts.places)
    same = checkpoints.use_checkpoint(parts, DIGEST, "copy")
    (copy / "prompt.json").write_text('{"prompt": "it is"}')
    assets.add_base("tiny", copy, parts.places)
    other = checkpoints.use_checkpoint(parts, DIGEST)
    assert same.verified.key == used.verified.key != other.verified.key


def test_a_checkpoint_that_is_no_adapter_has_no_base(parts):
    other = f"sha256:{5:064}"
    facts = {"architecture": "merge", "vocabulary_size": 3, "encoder": None}
    checkpoints.add(parts.records, other, 10, facts)
    with pytest.raises(InvalidRequest, match="is no adapter") as refused:
        checkpoints.use_checkpoint(parts, other, "tiny")
    assert refused.value.pointer == "/base"
