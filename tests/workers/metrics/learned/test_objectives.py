"""`prescore learned train` with each objective, as a user calls it."""

import json

import pytest
from typer.testing import CliRunner

import said_images
from prescore import exit_codes
from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from workers.cli.learned import learned
from workers.metrics.accord import model

IMAGES = said_images.images(60)


@pytest.fixture
def folder(tmp_path):
    """Images as a bundle, and judgements of them: a person's caption, and another image's."""
    people = {f"{at}.jpg": said for at, said in enumerate(IMAGES)}
    bundles.write_folder(
        tmp_path / "ours", [Item(image, "test", said) for image, said in people.items()]
    )
    lines = [
        {"image": image, "candidate": caption, "references": said[1:], "ratings": ratings}
        for at, (image, said) in enumerate(people.items())
        for caption, ratings in ((said[0], [4, 3]), (IMAGES[at - 7][0], [1, 2]))
    ]
    (tmp_path / "judged.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def _train(folder, *arguments, code=0):
    given = ["train", "--out", str(folder / "m.safetensors"), *map(str, arguments)]
    result = CliRunner().invoke(learned, given)
    assert result.exit_code == code, result.output
    return result


def test_contrast_needs_references_alone_and_writes_a_model_of_accord(folder):
    asked = ["--objective", "contrast", "--dataset", f"{folder}/ours/test", "--tokenizer", "none"]
    shown = _train(folder, *asked).stdout
    written = model.read(folder / "m.safetensors")
    assert written.name in shown
    assert "the words of 60 images; English" in shown
    assert f"{'shuffled':28} {60:9,}" in shown
    assert list(written.about["inputs"]) == ["dataset ours/test"]
    assert str(folder) not in json.dumps(written.card)


def test_judged_tells_its_agreement_beside_that_of_others(folder):
    asked = ["--objective", "judged", "--judgements", folder / "judged.jsonl"]
    shown = _train(folder, *asked, "--tokenizer", "none", "--beta", "0.5").stdout
    written = model.read(folder / "m.safetensors")
    assert written.about["recipe"]["beta"] == 0.5
    assert list(written.about["inputs"]) == ["judgements"]
    assert "test: 15 photos that were not learned from (30 rated captions, 0 pairs)" in shown
    rows = [line.split()[0] for line in shown.splitlines()[-3:]]
    assert rows == ["this", "accord", "cider_d"]
    for line, (name, row) in zip(
        shown.splitlines()[-2:],
        [(name, written.about["agreement"]["metrics"][name]) for name in ("accord", "cider_d")],
        strict=True,
    ):
        low, high = row["kendall_c_interval"]
        assert f"{name:12} " in line
        assert f"{row['kendall_c']:.3f} [{low:.3f}, {high:.3f}]" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--objective", "contrast", "--outputs", "a=a.json"), "--outputs belongs to --objective"),
        (("--objective", "contrast", "--epochs", "5"), "--epochs belongs to --objective people"),
        (("--objective", "contrast", "--learning-rate", "0"), "--learning-rate belongs to"),
        (("--objective", "judged", "--features", "bleu_1"), "--features belongs to --objective"),
        (("--objective", "judged", "--leave-out-rated"), "--leave-out-rated belongs to"),
        (
            ("--judgements", "j"),
            "--judgements belongs to --objective judged, found --objective peo",
        ),
        (("--objective", "contrast", "--judgements", "j"), "found --objective contrast"),
        (("--objective", "people"), "--objective people: expected --outputs, found none"),
        (("--objective", "judged"), "--objective judged: expected --judgements, found none"),
        (("--objective", "contrast"), "--objective contrast: expected --dataset, found none"),
        (("--objective", "people", "--outputs", "a=a.json"), "expected --dataset, found none"),
        (("--objective", "judged", "--judgements", "nowhere"), "found nothing at nowhere"),
    ],
)
def test_options_of_another_objective_and_missing_ones_are_refused(folder, arguments, said):
    told = _train(folder, *arguments, code=exit_codes.REFUSED).stderr
    assert said in told.replace("\n", " ")
    assert not (folder / "m.safetensors").exists()


def test_a_model_that_says_nothing_is_not_written(folder):
    lines = [json.loads(line) for line in (folder / "judged.jsonl").read_text().splitlines()]
    turned = [{**line, "ratings": [-each for each in line["ratings"]]} for line in lines]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, turned)))
    asked = ["--objective", "judged", "--judgements", folder / "judged.jsonl"]
    told = _train(folder, *asked, "--tokenizer", "none", code=exit_codes.FAILED).stderr
    assert "metric_failed: " in told
    assert not (folder / "m.safetensors").exists()
