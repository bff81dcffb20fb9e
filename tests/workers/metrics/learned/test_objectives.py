"""`prescore learned train` with each objective, as a user calls it."""

import json
import re

import pytest
from typer.testing import CliRunner

import commanding
import said_images
from prescore import exit_codes
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.metrics.accord import model

IMAGES = said_images.images(80)


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path):
    """Images as a bundle, and judgements of them: a person's caption, and another image's."""
    people = {f"{at}.jpg": said for at, said in enumerate(IMAGES)}
    bundles.write_bundle_folder(
        tmp_path / "ours", [BundleItem(image, "test", said) for image, said in people.items()]
    )
    lines = [
        {"image": image, "candidate": caption, "references": said[1:], "ratings": ratings}
        for at, (image, said) in enumerate(people.items())
        for caption, ratings in ((said[0], [4, 3]), (IMAGES[at - 7][0], [1, 2]))
    ]
    (tmp_path / "judged.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def _train(folder, *arguments, code=0):
    out = str(folder / "m.safetensors")
    command = ["learned", "train", f"{folder}/ours/test", "--out", out, *map(str, arguments)]
    result = CliRunner().invoke(commanding.prescore(), command)
    assert result.exit_code == code, result.output
    return result


def test_contrast_needs_references_alone_and_writes_a_model_of_accord(folder):
    asked = ["--objective", "contrast", "--tokenizer", "none"]
    shown = _train(folder, *asked).stdout
    written = model.read_accord(folder / "m.safetensors")
    assert written.name in shown
    assert re.search("^images +80$", shown, re.MULTILINE)
    assert re.search("^shuffled +80 +1.000$", shown, re.MULTILINE)
    assert list(written.about["inputs"]) == ["dataset"]
    assert str(folder) not in json.dumps(written.card)


def test_judged_tells_its_agreement_beside_that_of_others(folder):
    asked = ["--objective", "judged", "--judgements", folder / "judged.jsonl"]
    shown = _train(folder, *asked, "--tokenizer", "none", "--beta", "0.5").stdout
    written = model.read_accord(folder / "m.safetensors")
    assert written.about["recipe"]["beta"] == 0.5
    for name in ("accord", "cider_d"):
        row = written.about["agreement"]["metrics"][name]
        low, high = row["kendall_c_interval"]
        figures = f"{row['kendall_c']:.3f} [{low:.3f}, {high:.3f}]"
        assert re.search(rf"^{name} +{re.escape(figures)}", shown, re.MULTILINE), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--objective", "contrast", "--epochs", "5"),
            "expected it for the objective people",
        ),
        (("--objective", "people"), "--outputs: the objective people needs it"),
        (("--objective", "judged"), "--judgements: the objective judged needs it"),
        (("--objective", "judged", "--judgements", "nowhere"), "nowhere cannot be read"),
    ],
)
def test_options_of_another_objective_and_missing_ones_are_refused(folder, arguments, said):
    assert said in _train(folder, *arguments, code=exit_codes.REFUSED).stderr
    assert not (folder / "m.safetensors").exists()


def test_a_model_that_says_nothing_is_not_written(folder):
    lines = [json.loads(line) for line in (folder / "judged.jsonl").read_text().splitlines()]
    turned = [{**line, "ratings": [-each for each in line["ratings"]]} for line in lines]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, turned)))
    asked = ["--objective", "judged", "--judgements", folder / "judged.jsonl"]
    told = _train(folder, *asked, "--tokenizer", "none", code=exit_codes.FAILED).stderr
    assert "expected" in told
    assert not (folder / "m.safetensors").exists()
