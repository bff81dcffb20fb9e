"""The commands on real files; the slow ones are processes, as a user calls them."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from helpers import columns_files
from helpers.builders import ENCODER, model, tensors
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.cli.check import check
from workers.cli.convert import convert
from workers.cli.lab import lab
from workers.inference import checkpoints, features


def _here(*arguments):
    """Commands in this process, of which most of the time is the start."""
    app = typer.Typer()
    app.command()(check)
    app.add_typer(lab, name="lab")
    app.add_typer(convert, name="convert")
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def bundle(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{index}.jpg" for index in range(40)]
    captions = ("a red ball", "a blue box", "a red box")
    splits = ["train"] * 30 + ["val"] * 10
    items = [BundleItem(*at, captions) for at in zip(names, splits, strict=True)]
    bundles.write_bundle_folder(tmp_path / "bundle", items)
    rows = rng.normal(size=(40, 6)).astype(np.float32)
    features.write_features(tmp_path / "bundle" / "features.safetensors", names, rows, ENCODER)
    return tmp_path / "bundle"


def test_check_says_what_a_checkpoint_holds(tmp_path):
    checkpoints.write_checkpoint(
        tmp_path / "m.safetensors", model("par", "lstm", tensors("par", "lstm"))
    )
    result = _here("check", tmp_path / "m.safetensors", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["architecture"], facts["cell"], facts["vocabulary_size"]) == ("par", "lstm", 50)
    assert facts["parameters"] == sum(a.size for a in tensors("par", "lstm").values())


@pytest.fixture
def columns(tmp_path):
    path = tmp_path / "model.columns.safetensors"
    path.write_bytes(columns_files.columns())
    return path


@pytest.fixture
def split(tmp_path):
    """Of which the columns are."""
    items = [
        BundleItem("a.jpg", "test", ("a cat", "a dog")),
        BundleItem("b.jpg", "test", ("a cat sat",)),
    ]
    bundles.write_bundle_folder(tmp_path / "split", items)
    return tmp_path / "split"


def test_check_holds_columns_against_their_split(columns, split):
    result = _here("check", columns, "--dataset", split, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["images"], facts["references"], facts["tokens"]) == (2, 3, 9)
    assert facts["tokenizer"] == "own"
    assert str(split) in facts["split"]


@pytest.mark.parametrize(
    ("model", "said"), [("m 1", "m 1"), ("", "a model that the file does not name")]
)
def test_check_says_of_which_model_columns_are(columns, model, said):
    columns.write_bytes(columns_files.columns(metadata={"model": model}))
    assert json.loads(_here("check", columns, "--json").stdout)["columns of"] == model
    assert _here("check", columns).stdout.splitlines()[0] == f"{'columns of:':18} {said}"


def test_check_says_what_is_wrong_with_columns(columns, bundle):
    result = _here("check", columns, "--dataset", f"{bundle}/val")
    assert result.exit_code == 2
    assert "images[0]: the split has '30.jpg', the columns 'a.jpg'" in result.stderr
    columns.write_bytes(columns_files.columns(columns_files.changed("logp", 4, 0.5)))
    result = _here("check", columns)
    assert result.exit_code == 2
    assert "invalid_columns" in result.stderr


def test_flickr8ks_files_become_a_bundle(tmp_path):
    (tmp_path / "tokens.txt").write_text("a.jpg#0\tA cat .\na.jpg#1\tIt sits .\nb.jpg#0\tA dog .\n")
    (tmp_path / "test.txt").write_text("b.jpg\na.jpg\n")
    out = tmp_path / "out"
    sources = ("--tokens", tmp_path / "tokens.txt", "--test", tmp_path / "test.txt")
    result = _here("convert", "flickr8k", out, *sources)
    assert result.exit_code == 0, result.stderr
    assert list(bundles.read_items(out)) == [
        BundleItem("b.jpg", "test", ("A dog .",)),
        BundleItem("a.jpg", "test", ("A cat .", "It sits .")),
    ]


@pytest.mark.slow
def test_training_writes_a_checkpoint_an_epoch(bundle, tmp_path):
    command = [
        *(sys.executable, "-m", "workers", "lab", "train", bundle, tmp_path / "run"),
        *("--size", "8", "--epochs", "2", "--at-least", "1"),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    written = sorted((tmp_path / "run").iterdir())
    assert written[0].name == "epoch-00.safetensors"
    assert "epoch   0  loss -  " in result.stderr
    assert "nan" not in result.stderr
    assert checkpoints.read_checkpoint(written[-1]).description.architecture == "merge"


def test_an_unknown_architecture_is_told_with_those_there_are(bundle, tmp_path):
    result = _here("lab", "train", bundle, tmp_path / "run", "--architecture", "resnet")
    assert result.exit_code == 2
    assert "expected init, pre, par, merge" in result.stderr


@pytest.mark.slow
def test_ctrl_c_ends_a_training_and_keeps_what_is_written(bundle, tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "workers", "lab", "train", bundle, tmp_path / "run"),
            *("--size", "64", "--batch", "1", "--at-least", "1", "--epochs", "100000"),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "epoch-00.safetensors").exists():
            assert time.monotonic() < deadline, "no checkpoint in 60 s"
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped" in errors
    assert "Traceback" not in errors
    assert not list((tmp_path / "run").glob("*.partial"))


@pytest.mark.processes
def test_help_does_not_wait_for_torch():
    code = (
        "import pkgutil, sys; from importlib import import_module; from workers import cli\n"
        "for each in pkgutil.iter_modules(cli.__path__, 'workers.cli.'): import_module(each.name)\n"
        "print([name for name in ('torch', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
