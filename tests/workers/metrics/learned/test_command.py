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
from service.contract.errors import MetricFailed
from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from service.contract.plan.assets import Places, registered
from workers.cli.learned import learned
from workers.jobs.toolbox import Toolbox
from workers.metrics import postgen
from workers.metrics.learned import model
from workers.metrics.learned.network import Network
from workers.offline import assets


@pytest.fixture
def files(world, tmp_path):
    """What `world` holds, as files; its arguments."""
    people = world.material.people
    bundles.write_folder(
        tmp_path / "ours", [Item(image, "test", said) for image, said in people.items()]
    )
    arguments = ["--dataset", f"{tmp_path / 'ours'}/test"]
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
    result = CliRunner().invoke(learned, ["train", *map(str, arguments)])
    assert (result.exit_code, type(result.exception)) == (code, SystemExit), result.output
    return result.stderr.replace("\n", " ")


def test_a_model_is_trained_written_and_described(files, tmp_path):
    command = ["learned", "train", *files, "--ratings", str(tmp_path / "rated.jsonl")]
    result = CliRunner().invoke(commanding.prescore(), command)
    assert result.exit_code == 0, result.output
    written = model.read(tmp_path / "model.safetensors")
    assert written.name in result.stdout
    assert written.features == ("bleu_1", "cider_d")
    table = [line.split()[:-2] for line in result.stdout.splitlines()[-5:]]
    assert [" ".join(words) for words in table] == [
        *("all features", "bleu_1", "cider_d", "without bleu_1", "without cider_d")
    ]
    assert "it is not known what m0 was trained on" in result.stderr
    inputs = written.about["training"]["inputs"]
    assert {"dataset ours/test", "outputs m0", "ratings"} <= inputs.keys()
    assert str(tmp_path) not in json.dumps(written.about)


def test_json_says_all_that_is_known(files):
    arguments = [*files, "--json", "--learning-rate", "0.01"]
    result = CliRunner().invoke(learned, ["train", *arguments])
    found = json.loads(result.stdout)
    assert found["recipe"]["hidden"] == [72, 72]
    assert (found["recipe"]["learning_rate"], found["recipe"]["beta"]) == (0.01, 0.01)
    assert found["stopped_by"] == "held-out images"
    assert found["name"] == f"nneval@{found['digest'][:12]}"


def test_a_written_model_scores(files, refs, unused_jvm):
    options = ["--features", "bleu_4", "--epochs", "60", "--learning-rate", "0.1"]
    result = CliRunner().invoke(learned, ["train", *files, *options])
    assert result.exit_code == 0, result.output
    read = model.read(Path(files[-1]))
    found = postgen.score_tokens(
        "nneval", ["a dog"], refs, np.zeros(1, int), unused_jvm, model=read
    )
    assert 0 < found.corpus["nneval"] < 1


@pytest.mark.long
def test_word_vectors_are_a_feature_where_they_are_registered(files, tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    arguments = [*files, "--features", "wmd"]  # beside the two of before
    said = _refused(arguments, exit_codes.FAILED)
    assert "`prescore assets add word-vectors PATH` registers it" in said
    text = "".join(f"{word} {at} 1\n" for at, word in enumerate(("man", "dog", "cat", "runs")))
    (tmp_path / "vectors.txt").write_text(f"4 2\n{text}")
    assets.add("word-vectors", tmp_path / "vectors.txt", Places(tmp_path / "home"))
    result = CliRunner().invoke(learned, ["train", *arguments, "--json"])
    assert list(json.loads(result.stdout)["features"]) == ["bleu_1", "cider_d", "wmd"], (
        result.output
    )


def test_a_model_that_says_nothing_is_not_written_and_exits_with_the_figures(files, tmp_path):
    """By a penalty that drives its weights to zero."""
    said = _refused([*files, "--beta", "100", "--epochs", "60"], exit_codes.FAILED)
    assert "expected a spread of at least 0.05 from a caption of another image" in said
    assert re.search(r"found -?0\.0\d+.*smaller --beta", said), said
    assert not (tmp_path / "model.safetensors").exists()


def test_a_model_that_says_nothing_is_not_registered_nor_loaded(tmp_path):
    people = [["a cat", "the cat"], ["a dog in the park"]]
    good = learned_models.by_chance(people)
    layers = [(1e-5 * weights, biases) for weights, biases in good.classifier.layers]
    model.write(tmp_path / "flat", replace(good, classifier=Network(layers)))
    places = Places(tmp_path / "home")
    with pytest.raises(MetricFailed, match=r"expected a spread of at least 0\.05"):
        assets.add("learned", tmp_path / "flat", places)
    assert registered(places) == {}
    model.write(tmp_path / "good", good)
    digest = assets.add("learned", tmp_path / "good", places)["learned"].sha256
    toolbox = Toolbox("cpu", places)
    assert toolbox.learned("nneval", digest).digest == digest
    with pytest.raises(MetricFailed, match=r"expected a spread of at least 0\.05"):
        toolbox.named("nneval", "another", tmp_path / "flat", {})


def test_a_rated_photo_under_another_name_is_refused_or_left_out(files, tmp_path):
    path = tmp_path / "rated.jsonl"
    path.write_text(path.read_text().replace("100_x.jpg", "7_of_another_set.jpg"))
    arguments = [*files, "--ratings", path]
    assert "no photo in common, found 1" in _refused(arguments)
    given = ["train", *map(str, arguments), "--leave-out-rated", "--json"]
    found = json.loads(CliRunner().invoke(learned, given).stdout)
    assert found["training"]["images"] == 53  # and 6 are held out


def test_what_a_captioner_was_trained_on_is_refused(files, tmp_path):
    bundles.write_folder(tmp_path / "theirs", [Item("5_z.jpg", "train", ("a",))])
    theirs = f"{tmp_path / 'theirs'}/train"
    assert "'m1' was not trained on" in _refused([*files, "--trained-on", f"m1={theirs}"])
    assert "no --outputs of that name" in _refused([*files, "--trained-on", f"m9={theirs}"])


def test_wrong_arguments_are_named(files, tmp_path):
    (tmp_path / "strange.json").write_text('[{"image": "nowhere.jpg", "caption": "a"}]')
    assert "found 'nowhere.jpg'" in _refused([*files, "--outputs", f"s={tmp_path}/strange.json"])
    assert "expected NAME=" in _refused([*files, "--outputs", "strange.json"])
    assert "'rouge_l'" in _refused([*files, "--features", "rouge_l"])
    assert "expected a folder" in _refused([*files, "--out", tmp_path / "absent" / "m"])
    doubled = ["--dataset", f"{tmp_path / 'ours'}/test"]
    assert "two of the datasets" in _refused([*files, *doubled])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "has empty lines only"),
        ("[]", "expected a JSON object"),
        ('{"candidate": "a", "references": ["a"], "rating": 1}', "image: expected the name"),
        ('{"image": "1", "references": ["a"], "rating": 1}', "candidate: expected a text"),
        ('{"image": "1", "candidate": "a", "references": [], "rating": 1}', "references: expected"),
        (
            '{"image": "1", "candidate": "a", "references": ["a"]}',
            "rating: expected a number",
        ),
        (
            '{"image": "1", "candidate": "a", "references": ["a"], "rating": true}',
            "rating: expected a number, found True",
        ),
    ],
)
def test_a_wrong_line_of_ratings_is_named(files, tmp_path, line, complaint):
    (tmp_path / "rated.jsonl").write_text(f"{line}\n")
    assert complaint in _refused([*files, "--ratings", tmp_path / "rated.jsonl"])
