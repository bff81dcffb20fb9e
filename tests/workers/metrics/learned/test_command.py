"""`prescore learned train` as a user calls it: real files, in this process."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import commanding
import learned_models
from prescore import exit_codes
from service.contract.assets import AssetFolders, read_register
from service.contract.errors import MetricFailed
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.jobs.toolbox import Toolbox
from workers.metrics import postgen
from workers.metrics.learned import nneval
from workers.metrics.learned.network import HumanClassifier
from workers.offline import assets


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))


@pytest.fixture
def files(world, tmp_path):
    """What `world` holds, as files; its arguments."""
    people = world.material.people
    bundles.write_bundle_folder(
        tmp_path / "ours", [BundleItem(image, "test", said) for image, said in people.items()]
    )
    arguments = [f"{tmp_path / 'ours'}/test"]
    for captioner in world.material.captioners:
        path = tmp_path / f"{captioner.name}.json"
        said = [{"image": image, "caption": text} for image, text in captioner.captions.items()]
        path.write_text(json.dumps(said))
        arguments += ["--outputs", f"{captioner.name}={path}"]
    rated = world.rated
    rows = zip(rated.images, rated.captions, rated.reference_sets, rated.ratings, strict=True)
    names = ("image", "candidate", "references", "ratings")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    (tmp_path / "rated.jsonl").write_text("\n".join(lines) + "\n")
    small = ["--features", "bleu_1,cider_d", "--tokenizer", "none", "--epochs", "3"]
    return [*arguments, *small, "--out", str(tmp_path / "model.safetensors")]


def _refused(arguments, code=exit_codes.REFUSED):
    result = _train(arguments)
    assert (result.exit_code, type(result.exception)) == (code, SystemExit), result.output
    return (result.stderr + result.stdout).replace("\n", " ")


def _train(arguments):
    command = ["learned", "train", *map(str, arguments)]
    return CliRunner().invoke(commanding.prescore(), command)


def test_a_model_is_trained_written_and_described(files, tmp_path):
    result = _train([*files, "--ratings", tmp_path / "rated.jsonl"])
    assert result.exit_code == 0, result.output
    written = nneval.read_nneval(tmp_path / "model.safetensors")
    assert written.name in result.stdout
    assert written.features == ("bleu_1", "cider_d")
    for row in ("all features", "bleu_1", "cider_d", "without bleu_1", "without cider_d"):
        assert re.search(rf"^{row} +-?0\.", result.stdout, re.MULTILINE), row
    assert "nobody says what m0 was trained on" in result.stdout
    inputs = written.about["training"]["inputs"]
    assert {"dataset", "outputs m0", "ratings"} <= inputs.keys()
    assert str(tmp_path) not in json.dumps(written.about)


def test_a_written_model_scores(files, refs, unused_jvm):
    options = ["--features", "bleu_4", "--epochs", "60", "--learning-rate", "0.1"]
    result = _train([*files, *options])
    assert result.exit_code == 0, result.output
    read = nneval.read_nneval(Path(files[-1]))
    found = postgen.score_tokens(
        "nneval", ["a dog"], refs, np.zeros(1, int), unused_jvm, model=read
    )
    assert 0 < found.corpus["nneval"] < 1


def test_a_model_that_says_nothing_is_not_written_and_exits_with_the_figures(files, tmp_path):
    """By a penalty that drives its weights to zero."""
    said = _refused([*files, "--beta", "100", "--epochs", "60"], exit_codes.FAILED)
    assert "expected a spread of at least 0.05 from a caption of another image" in said
    assert not (tmp_path / "model.safetensors").exists()


def test_a_model_that_says_nothing_is_not_registered_nor_loaded(tmp_path):
    people = [["a cat", "the cat"], ["a dog in the park"]]
    good = learned_models.by_chance(people)
    layers = [(1e-5 * weights, biases) for weights, biases in good.classifier.layers]
    nneval.write_nneval(tmp_path / "flat", replace(good, classifier=HumanClassifier(layers)))
    places = AssetFolders(tmp_path / "home")
    with pytest.raises(MetricFailed, match=r"expected a spread of at least 0\.05"):
        assets.add_asset("learned", tmp_path / "flat", places)
    assert read_register(places) == {}
    nneval.write_nneval(tmp_path / "good", good)
    digest = assets.add_asset("learned", tmp_path / "good", places)["learned"].sha256
    toolbox = Toolbox("cpu", places)
    assert toolbox.learned("nneval", digest).digest == digest
    with pytest.raises(MetricFailed, match=r"expected a spread of at least 0\.05"):
        toolbox.named("nneval", "another", tmp_path / "flat", {})


def test_a_wrong_line_of_ratings_is_named_by_its_option_and_place(files, tmp_path):
    line = {"image": "1", "candidate": "a", "references": ["a"], "rating": 1}
    rated = [line, {**line, "candidate": 7}]
    (tmp_path / "rated.jsonl").write_text("\n".join(map(json.dumps, rated)))
    said = _refused([*files, "--ratings", tmp_path / "rated.jsonl"])
    assert "--ratings, item 2, candidate: expected a text" in said
