"""References in the formats that people have, and a bundle that is nearly one."""

import json

import pytest

from helpers.contract_files import refused
from prescore.foreign import BUNDLE_LINE
from service.contract.assets import AssetFolders
from service.contract.errors import InvalidBundle
from service.contract.formats.bundles import BundleItem
from workers.offline import references, sources

TWO = [BundleItem("1.jpg", "val", ("a dog", "dogs")), BundleItem("2", "val", ("a cat",))]
APART = [("1.jpg", "a dog"), (2, "a cat"), ("1.jpg", "dogs")]
LISTED = [{"image": "1.jpg", "references": ["a dog", "dogs"]}, {"image_id": 2, "caption": "a cat"}]


@pytest.mark.parametrize(
    "content",
    [
        '{"1.jpg": ["a dog", "dogs"], "2": ["a cat"]}',
        '{"1.jpg": [{"caption": "a dog", "id": 7}, {"caption": "dogs"}], "2": ["a cat"]}',
        json.dumps(LISTED),
        "\n".join(map(json.dumps, LISTED)),
        json.dumps([{"image_id": image, "caption": text} for image, text in APART]),
        "image_id;Caption\n" + "".join(f"{image};{text}\n" for image, text in APART),
    ],
)
def test_each_format_is_read_as_the_same_references(tmp_path, content):
    (tmp_path / "mine").write_text(content)
    assert list(references.read_references_file(tmp_path / "mine", "val")) == TWO


def test_a_single_line_is_a_line(tmp_path):
    (tmp_path / "mine").write_text(json.dumps(LISTED[0]))
    assert list(references.read_references_file(tmp_path / "mine", "val")) == TWO[:1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (" \n", ("expected", "found an empty file")),
        ('{"1.jpg": 3}', ("image '1.jpg': expected [\"a dog\", …], found 3",)),
        ('{"1.jpg": ["a", null]}', ("image '1.jpg'", "found None")),
        ('{"annotations": [], "images": []}', ("`prescore convert coco` reads it",)),
        ('{"images": [], "dataset": "x"}', ("`prescore convert karpathy` reads it",)),
        ('["a dog"]', ("item 1: expected an object, found 'a dog'",)),
        ('[{"references": ["a"]}]', ("item 1", 'one of "image" and "image_id"', "found none")),
        ('[{"image": "a", "image_id": "b", "caption": "a"}]', ("item 1", "found 'a' and 'b'")),
        ('[{"image": "a"}]', ("item 1", "found no fields of references, captions, caption")),
        ('{"a": ["x"], "a": ["y"]}', ("the file", "every key once")),
        ("[" * 99999, ("the file", "nesting too deep")),
        ("file_name,caption\n1.jpg,a\n", ("line 1", "name 'file_name' image")),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, content, words):
    path = tmp_path / "mine"
    path.write_text(content)
    refused(
        lambda: list(references.read_references_file(path, "val")), InvalidBundle, f"{path}", *words
    )


LINE = json.loads(BUNDLE_LINE)


def _but(**fields):
    changed = {**LINE, **fields}
    return json.dumps({name: value for name, value in changed.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gts.json", '{"1.jpg": ["a"]}', ("found a JSON object", BUNDLE_LINE, "`references`")),
        ("refs.json", '[{"image": "a"}]', ("found a JSON list", BUNDLE_LINE)),
        ("refs.csv", "image,caption", ("found a text file", BUNDLE_LINE)),
        ("mine/captions.jsonl", BUNDLE_LINE, ("found the file itself: name its folder, mine",)),
        ("mine", _but(split=None), ("mine/captions.jsonl, line 1, split", "none", BUNDLE_LINE)),
        ("mine", _but(references=None, captions=["a"]), ("but 'captions': name it 'references'",)),
        ("mine", _but(image=None, image_id="1"), ("but 'image_id': name it 'image'", BUNDLE_LINE)),
        ("mine", _but(image=7), ("mine/captions.jsonl, line 1, image: expected", "found 7")),
    ],
)
def test_what_is_nearly_a_bundle_is_told_what_one_is(tmp_path, monkeypatch, name, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / ("mine/captions.jsonl" if name == "mine" else name)).write_text(content)
    refused(lambda: sources.find_source(name, AssetFolders(tmp_path)), InvalidBundle, *words)
