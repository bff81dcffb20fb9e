"""`prescore learned train` with each objective, as a user calls it: real files, in this process."""

import json
import re
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from helpers import command_app, synthetic_captions
from prescore import exit_codes
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.metrics.accord import model
from workers.metrics.learned import nneval


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))


def _write_bundle(folder, people):
    items = [BundleItem(image, "test", said) for image, said in people.items()]
    bundles.write_bundle_folder(folder / "ours", items)


def _write_lines(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def _train(folder, *arguments, code=0):
    """What is written to stdout, or to both streams if it is refused."""
    command = ["learned", "train", f"{folder}/ours/test", "--tokenizer", "none"]
    command += ["--out", str(folder / "model.safetensors"), *map(str, arguments)]
    result = CliRunner().invoke(command_app.prescore(), command)
    assert result.exit_code == code, result.output
    assert (folder / "model.safetensors").exists() == (code == 0)
    return result.stdout if code == 0 else (result.stderr + result.stdout).replace("\n", " ")


@pytest.fixture
def captioners(world, tmp_path):
    """What `world` holds, as files; the options that name the captioners'."""
    _write_bundle(tmp_path, world.material.people)
    _write_lines(tmp_path / "rated.jsonl", [asdict(line) for line in world.rated])
    options = []
    for captioner in world.material.captioners:
        path = tmp_path / f"{captioner.name}.json"
        said = [{"image": image, "caption": text} for image, text in captioner.captions.items()]
        path.write_text(json.dumps(said))
        options += ["--outputs", f"{captioner.name}={path}"]
    return [*options, "--features", "bleu_1,cider_d", "--epochs", "3"]


def test_a_model_of_nneval_is_trained_written_and_described(captioners, tmp_path):
    shown = _train(tmp_path, *captioners, "--ratings", tmp_path / "rated.jsonl")
    written = nneval.read_nneval(tmp_path / "model.safetensors")
    assert written.name in shown
    assert written.features == ("bleu_1", "cider_d")
    for row in ("all features", "bleu_1", "cider_d", "without bleu_1", "without cider_d"):
        assert re.search(rf"^{row} +-?0\.", shown, re.MULTILINE), row
    assert "nobody says what m0 was trained on" in shown
    assert {"dataset", "outputs m0", "ratings"} <= written.about["training"]["inputs"].keys()
    assert str(tmp_path) not in json.dumps(written.about)


def test_a_model_that_says_nothing_is_not_written_and_exits_with_the_figures(captioners, tmp_path):
    """By a penalty that drives its weights to zero."""
    asked = [*captioners, "--beta", "100", "--epochs", "60"]
    said = _train(tmp_path, *asked, code=exit_codes.FAILED)
    assert "expected a spread of at least 0.05 from a caption of another image" in said


def test_a_wrong_line_of_ratings_is_named_by_its_option_and_place(captioners, tmp_path):
    line = {"image": "1", "candidate": "a", "references": ["a"], "rating": 1}
    rated = _write_lines(tmp_path / "rated.jsonl", [line, {**line, "candidate": 7}])
    said = _train(tmp_path, *captioners, "--ratings", rated, code=exit_codes.REFUSED)
    assert "--ratings, item 2, candidate: expected a text" in said


@pytest.fixture
def folder(tmp_path):
    """Images as a bundle, and judgements of them: a person's caption, and another image's."""
    images = synthetic_captions.images(80)
    people = {f"{at}.jpg": said for at, said in enumerate(images)}
    _write_bundle(tmp_path, people)
    lines = [
        {"image": image, "candidate": caption, "references": said[1:], "ratings": ratings}
        for at, (image, said) in enumerate(people.items())
        for caption, ratings in ((said[0], [4, 3]), (images[at - 7][0], [1, 2]))
    ]
    _write_lines(tmp_path / "judged.jsonl", lines)
    return tmp_path


def test_contrast_needs_references_alone_and_writes_a_model_of_accord(folder):
    shown = _train(folder, "--objective", "contrast")
    written = model.read_accord(folder / "model.safetensors")
    assert written.name in shown
    assert re.search("^images +80$", shown, re.MULTILINE)
    assert re.search("^shuffled +80 +1.000$", shown, re.MULTILINE)
    assert list(written.about["inputs"]) == ["dataset"]
    assert str(folder) not in json.dumps(written.card)


def test_judged_tells_its_agreement_beside_that_of_others(folder):
    asked = ["--objective", "judged", "--judgements", folder / "judged.jsonl", "--beta", "0.5"]
    shown = _train(folder, *asked)
    written = model.read_accord(folder / "model.safetensors")
    assert written.about["recipe"]["beta"] == 0.5
    for name in ("accord", "cider_d"):
        row = written.about["agreement"]["metrics"][name]
        low, high = row["kendall_c_interval"]
        figures = f"{row['kendall_c']:.3f} [{low:.3f}, {high:.3f}]"
        assert re.search(rf"^{name} +{re.escape(figures)}", shown, re.MULTILINE), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--objective", "contrast", "--epochs", "5"), "expected it for the objective people"),
        (("--objective", "judged"), "--judgements: the objective judged needs it"),
        (("--objective", "judged", "--judgements", "nowhere"), "nowhere cannot be read"),
    ],
)
def test_options_of_another_objective_and_missing_ones_are_refused(folder, arguments, said):
    assert said in _train(folder, *arguments, code=exit_codes.REFUSED)
