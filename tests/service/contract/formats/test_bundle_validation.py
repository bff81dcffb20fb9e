"""Bundles that are uploaded: bounded, which stored ones are not, and their pictures counted."""

import pytest

from helpers.contract_files import line, refused, tar, tar_block, tar_entry
from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import files as pictures
from service.contract.formats.bundles import validation


@pytest.fixture
def few(monkeypatch):
    for name, value in {"SPLITS": 2, "REFERENCES": 3, "TOKENS": 4, "MEMBERS": 5}.items():
        monkeypatch.setattr(limits, name, value)


def _judged(path, lines, *entries):
    path.write_bytes(tar(tar_entry(b"captions.jsonl", b"".join(lines)), *entries))
    return validation.validate_bundle(path)


TOO_MANY = {
    "splits": ([line(str(n), split=str(n)) for n in range(3)], ("line 3, split", "of 2 splits")),
    "references": ([line("a", references=["b"] * 4)], ("line 1, references", "most 3", "found 4")),
    "words": ([line("a", references=["b", "a b c d e"])], ("references/1", "at most 4 words")),
    "signs": ([line("a", references=["((((("])], ("references/0", "at most 4 words and signs")),
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("case", TOO_MANY)
def test_too_many_are_refused_with_line_and_field_and_read_if_they_are_stored(tmp_path, case):
    lines, told = TOO_MANY[case]
    path = tmp_path / "bundle.tar"
    refused(lambda: _judged(path, lines), InvalidBundle, *told)
    assert len(list(bundles.read_items(path))) == len(lines)


FILES = [tar_block(b"%d" % number, 0) for number in range(5)]
HEADERS = [tar_entry(b"pax", b"", b"g")] * 11


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("entries", [FILES, HEADERS], ids=["files", "headers"])
def test_a_tar_of_too_many_files_is_refused(tmp_path, entries):
    path = tmp_path / "bundle.tar"
    words = ("expected at most 5 files", "found more")
    refused(lambda: _judged(path, [line()], *entries), InvalidBundle, *words)


@pytest.mark.usefixtures("few")
def test_as_many_as_the_limits_say_are_accepted(tmp_path):
    lines = [line(str(n), split=str(n), references=["a b c d", "((((", "e"]) for n in range(2)]
    found = _judged(tmp_path / "bundle.tar", lines, *FILES[:4])
    counts = {"images": 1, "references": 3, "words": 6}
    assert found.splits == {str(n): counts for n in range(2)}


JPEG = b"\xff\xd8\xff\xe0" + bytes(20)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
WEBP = b"RIFF\x0a\x00\x00\x00WEBPVP8 "
CAPTIONS = line("a.jpg") + line("b/b.png") + line("c.webp", split="train")
NAMED = {"images/a.jpg": JPEG, "images/b/b.png": PNG, "images/c.webp": WEBP}


def _counted(bundle, files):
    splits = validation.validate_bundle(bundle({"captions.jsonl": CAPTIONS, **files})).splits
    return {name: counts.get("pictures", "untold") for name, counts in splits.items()}


def test_a_picture_may_be_missing_and_a_file_that_no_line_names_may_be_anything(bundle):
    files = {"images/b/b.png": PNG, "images/Thumbs.db": b"x", "a.jpg": b"x"}
    assert _counted(bundle, files) == {"test": 1, "train": "untold"}


@pytest.mark.parametrize(
    "content", [b"", b"GIF89a", b"RIFF\x0a\x00\x00\x00WAVE", b" " + JPEG, b"\xff\xd8"]
)
def test_what_is_no_picture_is_named_with_its_line(bundle, content):
    told = ("line 2", "images/b/b.png", "expected a picture in JPEG, PNG or WebP")
    refused(lambda: _counted(bundle, {**NAMED, "images/b/b.png": content}), InvalidBundle, *told)


def test_a_picture_may_have_so_many_bytes_and_no_more(bundle, monkeypatch):
    monkeypatch.setattr(limits, "PICTURE_BYTES", len(JPEG))
    assert _counted(bundle, NAMED) == {"test": 2, "train": 1}
    monkeypatch.setattr(limits, "PICTURE_BYTES", len(JPEG) - 1)
    told = ("line 1", "images/a.jpg", "has 24 bytes, more than 23")
    refused(lambda: _counted(bundle, NAMED), InvalidBundle, *told)


def test_the_place_of_a_picture_is_where_its_bytes_are(bundle):
    path = bundle({"captions.jsonl": CAPTIONS, **NAMED})
    asked = ["c.webp", "none.jpg", "../a.jpg", "a.jpg"]
    found = list(pictures.find_pictures(path, asked))
    for place, content in ((found[0], WEBP), (found[3], JPEG)):
        assert place.path.read_bytes()[place.start : place.start + place.size] == content
    assert "images/none.jpg" in found[1]
    assert "images/../a.jpg" in found[2]
