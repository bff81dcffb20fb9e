"""`prescore convert references`: what a folder has is kept, and what is left out is told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.cli.convert import convert


@pytest.fixture
def converted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(said, split, out="mine"):
        if isinstance(said, dict):
            (tmp_path / "gts.json").write_text(json.dumps(said))
            said = "gts.json"
        return CliRunner().invoke(convert, ["references", said, out, "--split", split])

    return run


def _items():
    return sorted(bundles.read_items(Path("mine")), key=lambda item: item.image)


DOG, CAT, COW = (BundleItem(f"{n}.jpg", "test", (f"a {n}",)) for n in ("dog", "cat", "cow"))


def test_the_same_split_is_replaced_and_that_is_said_and_others_are_kept(converted):
    other = BundleItem("7.jpg", "val", ("x", "y"), "7")
    bundles.write_bundle_folder(Path("mine"), [DOG, CAT, other])
    result = converted({"cow.jpg": ["a cow"]}, "test")
    assert result.exit_code == 0
    assert result.stderr == "replaced the split 'test', which had 2 images; kept: 'val'\n"
    result = converted({"3.jpg": ["a"]}, "train")
    assert (result.exit_code, result.stderr) == (0, "")
    assert _items() == [BundleItem("3.jpg", "train", ("a",)), other, COW]


def test_an_image_of_another_split_is_refused_by_name(converted):
    bundles.write_bundle_folder(Path("mine"), [DOG])
    result = converted({"cat.jpg": ["a"], "dog.jpg": ["a"]}, "val")
    assert result.exit_code == 2
    assert "image 'dog.jpg' is in the split 'test' already" in result.stderr
    assert _items() == [DOG]


def test_captions_that_cannot_be_read_are_not_overwritten(converted, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/captions.jsonl").write_text("mine")
    result = converted({"dog.jpg": ["a dog"]}, "test")
    assert result.exit_code == 2
    assert "mine/captions.jsonl, line 1" in result.stderr
    assert (tmp_path / "mine/captions.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    ("table", "warning"),
    [
        ("image;caption;Caption2;\n1.jpg;a;b;\n", "'caption2', ''"),
        ("image_id,caption\n1.jpg,a\n", None),
    ],
)
def test_columns_that_are_not_used_are_told(converted, tmp_path, table, warning):
    (tmp_path / "refs.csv").write_text(table)
    result = converted("refs.csv", "test")
    expected = warning and f"warning: refs.csv: columns that are not used: {warning}\n"
    assert (result.exit_code, result.stderr) == (0, expected or "")


def test_what_is_refused_leaves_no_folder_and_is_named_once(converted, tmp_path):
    result = converted("gts.jsn", "test", "new/mine")
    assert result.exit_code == 2
    assert result.stderr.count("gts.jsn") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays_where_references_are_refused(converted, tmp_path):
    (tmp_path / "mine").mkdir()
    assert converted({"1.jpg": []}, "test").exit_code == 2
    assert (tmp_path / "mine").is_dir()
