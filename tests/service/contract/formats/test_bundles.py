"""Captions of a bundle, in a folder and in a tar alike (T45): a clear error, or nothing shifted."""

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.contract_files import line, refused
from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem


def items_of(captions, bundle):
    return list(bundles.read_items(bundle({"captions.jsonl": captions})))


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def refused_lines(captions, bundle, *words, pointer=None):
    found = refused(lambda: items_of(captions, bundle), InvalidBundle, *words)
    assert found.pointer == pointer


def test_items_come_in_the_files_order_with_ids_as_text(bundle):
    captions = (
        b'{"image": "a.jpg", "id": 391895, "split": "test", "references": ["a cat", "cats"]}\n'
        b'{"image": "b.jpg", "id": "x-7", "split": "val", "references": ["a dog"], "more": [1]}\r\n'
        b'{"references": ["caf\xc3\xa9", "caf\\u00e9"], "split": "test", "image": "\xc3\xa9.jpg"}'
    )
    assert items_of(captions, bundle) == [
        BundleItem("a.jpg", "test", ("a cat", "cats"), "391895"),
        BundleItem("b.jpg", "val", ("a dog",), "x-7"),
        BundleItem("é.jpg", "test", ("café", "café"), None),
    ]


ODD = [
    *("", " ", "\r", "a\rb", "\n", "a\nb", "\r\n", "\u2028", "a\u2029b", "a\u0085b", "\x0b\x0c"),
    *("|||", "a ||| b", "\u200fشخص\u200e", "\u202eabc", "😀", "👩\u200d👧", "e\u0301", "\ufeff"),
    *("\0", "\\n", '"', "\t", "\u00a0", "\ufffd", "\U0010ffff", "x" * 10_000, "NaN", '{"a": 1}'),
]


@pytest.mark.parametrize("escaped", [True, False])
def test_captions_with_odd_characters_come_back_unchanged_and_never_shifted(escaped, bundle):
    written = [(f"{n}.jpg", [text, f"marker {n}", text]) for n, text in enumerate(ODD)]
    items = ({"image": image, "split": "test", "references": texts} for image, texts in written)
    captions = "".join(json.dumps(item, ensure_ascii=escaped) + "\n" for item in items)
    found = items_of(captions.encode(), bundle)
    assert [(item.image, list(item.references)) for item in found] == written


@pytest.mark.long
@pytest.mark.parametrize(
    ("second", "words", "pointer"),
    [
        (line("b", []), ("line 2, references", "at least one caption", "found []"), "references"),
        (line("b", "a cat"), ("line 2, references", "a list", "found 'a cat'"), "references"),
        (line("b", ["x", 5]), ("line 2, references/1", "a text", "found 5"), "references/1"),
        (
            line("b", ["x", "y" * 10_001]),
            ("at most 10000", "found 10001 characters"),
            "references/1",
        ),
        (line(None), ("line 2, image", "1 to 500 characters", "found none"), "image"),
        (line(""), ("line 2, image", "1 to 500 characters", "found ''"), "image"),
        (line("x" * 501), ("line 2, image", "found 501 characters"), "image"),
        (line("a\nb"), ("line 2, image", "printable characters", r"found 'a\nb'"), "image"),
        (line("b", split=""), ("line 2, split", "found ''"), "split"),
        (line("b", id=1.5), ("line 2, id", "found 1.5"), "id"),
        (line("b", id=""), ("line 2, id", "found ''"), "id"),
        (line("b", id=10**30), ("line 2, id", "whole number of at most 18 digits", "1e+30"), "id"),
        (line("a.jpg"), ("line 2, image", "'a.jpg' is taken by line 1"), "image"),
        (line("b", id="a.jpg"), ("line 2, id", "'a.jpg' is taken by line 1"), "id"),
        (line("b", id=7), ("line 2, id", "'7' is taken by line 1"), "id"),
        (line("7"), ("line 2, image", "'7' is taken by line 1"), "image"),
        (
            rb'{"references": ["x", "\ud800"]}',
            ("line 2, references/1", "surrogate"),
            "references/1",
        ),
    ],
)
def test_a_wrong_field_is_refused_with_its_line(second, words, pointer, bundle):
    captions = line("a.jpg", id=7) + second
    refused_lines(captions, bundle, *words, pointer=f"/2/{pointer}")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (b"  \t\r\n", ("line 2", "found an empty line")),
        (b"[]\n", ("line 2", "expected a JSON object, found []")),
        (b'{"image": "b"\n', ("line 2", "expected JSON", "at column")),
        (b'{"image": "b", "image": "c"}\n', ("line 2", "every key once", "'image' 2 times")),
        (b'{"image": "a\xff"}\n', ("line 2", "not UTF-8", "byte 12")),
        (b'{"x": "' + b"y" * 10**6 + b'"}\n', ("line 2", "longer than 1000000 bytes")),
    ],
)
def test_a_line_that_is_no_item_is_refused_with_its_number(second, words, bundle):
    captions = line("a.jpg") + second + line("z.jpg")
    found = refused(lambda: items_of(captions, bundle), InvalidBundle, *words)
    assert found.pointer in (None, "/2")


def test_an_empty_file_and_a_blank_line_at_the_end_are_refused(bundle):
    refused_lines(b"", bundle, "captions.jsonl is empty", "expected a line for each image")
    refused_lines(line("a.jpg") + b"\n", bundle, "line 2", "found an empty line")


def test_more_images_than_the_limit_are_refused(bundle, monkeypatch):
    monkeypatch.setattr(limits, "IMAGES", 3)
    captions = [line(f"{n}.jpg") for n in range(4)]
    assert len(items_of(b"".join(captions[:3]), bundle)) == 3
    refused_lines(b"".join(captions), bundle, "expected at most 3 lines")


def test_a_name_may_equal_its_own_id_and_look_like_another_in_other_letters(bundle):
    names = ["7", "07", "é", "e\u0301", "A", "a"]
    captions = line("7", id=7) + b"".join(map(line, names[1:]))
    assert [item.image for item in items_of(captions, bundle)] == names


def test_the_items_before_a_wrong_line_are_read_before_it_is(bundle):
    stream = bundles.read_items(bundle({"captions.jsonl": line("a.jpg") + b"x\n"}))
    assert next(stream).image == "a.jpg"
    refused(lambda: next(stream), InvalidBundle, "line 2")


def test_a_split_is_chosen_by_name_and_others_are_named(bundle):
    captions = line("a") + line("b", split="val") + line("c")
    path = bundle({"captions.jsonl": captions})
    assert [item.image for item in bundles.read_split(path, "test")] == ["a", "c"]
    assert [item.image for item in bundles.read_split(path, "val")] == ["b"]
    refused(lambda: bundles.read_split(path, "dev"), InvalidBundle, "'dev'", "found test, val")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
PRINTABLE = st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S"])
NAMES = st.text(PRINTABLE, min_size=1, max_size=8)
REFERENCES = st.lists(TEXTS, min_size=1, max_size=4).map(tuple)
IDS = st.none() | NAMES | st.integers(-(10**20), 10**20).map(str) | st.sampled_from(["007", "-0"])


@pytest.mark.long
@given(items=st.lists(st.builds(BundleItem, NAMES, NAMES, REFERENCES, IDS), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read_back_or_refused_before_it_replaces_anything(
    items, tmp_path_factory
):
    folder = tmp_path_factory.getbasetemp() / "round trip"
    names = [name for item in items for name in {item.image, item.id} - {None}]
    (folder / "captions.jsonl").unlink(missing_ok=True)
    if len(set(names)) < len(names):
        act = partial(bundles.write_bundle_folder, folder, items)
        refused(act, InvalidBundle, "is taken by line")
        assert names_in(folder) == []
    else:
        bundles.write_bundle_folder(folder, items)
        assert list(bundles.read_items(folder)) == items
        assert names_in(folder) == ["captions.jsonl"]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], ("captions.jsonl is empty",)),
        ([BundleItem("b", "test", ())], ("line 1, references", "at least one caption")),
        ([BundleItem("b", "test", ("\ud800",))], ("line 1", "not UTF-8")),
        ([BundleItem("b", "test", ("x" * 9_999,) * 101)], ("line 1", "longer than 1000000 bytes")),
    ],
)
def test_what_could_not_be_read_again_is_not_written(items, words, tmp_path):
    bundles.write_bundle_folder(tmp_path, [BundleItem("old", "test", ("x",))])
    refused(lambda: bundles.write_bundle_folder(tmp_path, items), InvalidBundle, *words)
    assert [found.image for found in bundles.read_items(tmp_path)] == ["old"]
    assert names_in(tmp_path) == ["captions.jsonl"]
