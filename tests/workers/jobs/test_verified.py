"""The tasks on a checkpoint of a plug-in: they ask for the version that has verified it."""

import json

import numpy as np
import pytest

from helpers import plugin_packages as packages
from helpers.builders import ENCODER
from service.contract.assets import AssetFolders
from service.contract.errors import PluginUnavailable, UnusableCheckpoint
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.digests import compute_digest
from workers import jobs
from workers.conversion.foreign_files import ConversionLimits
from workers.inference import columns, features, pieces
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.progress import ignore_progress

IMAGES = 6
PLUGIN = {"name": "show-and-tell", "package": "acme-captioners", "version": "1.0"}


@pytest.fixture
def given(tmp_path):
    """The inputs of the tasks, and a package of version 1.0."""
    packages.install(tmp_path / "1.0")
    names = [f"{at}.jpg" for at in range(IMAGES)]
    bundles.write_bundle_folder(
        tmp_path / "b", [BundleItem(name, "test", ("w3 w4", "w5")) for name in names]
    )
    rows = np.random.default_rng(1).normal(size=(IMAGES, 5)).astype(np.float32)
    features.write_features(tmp_path / "b" / bundles.FEATURES, names, rows, ENCODER)
    (tmp_path / "model").write_bytes(packages.checkpoint()[0])
    return {"checkpoint": tmp_path / "model", "dataset": tmp_path / "b"}


def _run(kind, tmp_path, inputs, parts=(), **parameters):
    digests = {
        name: compute_digest(path) if path.is_file() else name for name, path in inputs.items()
    }
    request = JobRequest(inputs, digests, parts, parameters)
    result = jobs.OTHERS[kind](request, Toolbox("cpu", AssetFolders(tmp_path)), ignore_progress)
    path = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
    result.write(path)
    return path, result.summary


def _verified(tmp_path, given):
    path, summary = _run("checkpoint", tmp_path, {"package": given["checkpoint"]}, plugin=PLUGIN)
    assert summary.converted["plugin"] == PLUGIN
    return {**given, "verified": path}


@pytest.mark.parametrize("units", ["", "units:words|"])
def test_shards_of_columns_are_signed_as_the_whole_is(given, tmp_path, units):
    if units:
        given["checkpoint"].write_bytes(packages.of_pieces())
    with packages.beside(tmp_path / "1.0"):
        inputs = _verified(tmp_path, given)
        whole, _ = _run("columns", tmp_path, inputs, split="test")
        asked = [{"split": "test", "images": part} for part in ([0, 4], [4, 6])]
        parts = [_run("columns", tmp_path, inputs, **each)[0] for each in asked]
        joined, _ = _run("columns", tmp_path, inputs, parts, split="test")
    named = "show-and-tell@acme-captioners-1.0"
    assert [columns.read_columns(path)[1]["plugin"] for path in (whole, joined)] == [named] * 2
    for path in (whole, joined):
        _, scored = _run("pregen", tmp_path, {"columns": path})
        assert scored.signature == f"pregen|columns|fp32|plugin:{named}|{units}v:1"


@pytest.mark.parametrize("kind", ["prefix", "columns", "captions"])
def test_another_version_than_the_one_that_verified_it_is_refused(given, tmp_path, kind):
    with packages.beside(tmp_path / "1.0"):
        inputs = _verified(tmp_path, given)
    packages.install(tmp_path / "2.0", "2.0")
    asked = {"split": "test", "decoding": {"beam": 1}}
    with packages.beside(tmp_path / "2.0"), pytest.raises(PluginUnavailable) as caught:
        _run(kind, tmp_path, inputs, **asked)
    assert "(acme-captioners 1.0), this worker has show-and-tell (acme-captioners 2.0)" in (
        caught.value.detail
    )


def _doubling(times):
    """A tokenizer that makes two of each letter `a`, so many times."""
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    vocabulary = {letter: at for at, letter in enumerate("abcdef")}
    return json.dumps(
        {
            "version": "1.0",
            "normalizer": {"type": "Sequence", "normalizers": [step] * times},
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "b"},
        }
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        ('{"model": {}}', r"tokenizer\.json describes no tokenizer: "),
        (_doubling(40), r"its normalizer may make more than 64 characters of one"),
    ],
)
def test_a_strangers_tokenizer_is_never_opened_outside_of_the_sandbox_where_it_fails_there(
    needs_sandbox, tmp_path, monkeypatch, tokenizer, said
):
    packages.install(tmp_path / "1.0")
    path, opened = tmp_path / "pieces.safetensors", []
    path.write_bytes(packages.of_pieces(**{"tokenizer.json": tokenizer}))
    monkeypatch.setattr(pieces, "parse_tokenizer", lambda *given: opened.append(given))
    monkeypatch.setattr(Toolbox, "box", ConversionLimits(memory=100_000_000))
    with packages.beside(tmp_path / "1.0"), pytest.raises(UnusableCheckpoint, match=said):
        _run("checkpoint", tmp_path, {"package": path}, plugin=PLUGIN)
    assert opened == []
