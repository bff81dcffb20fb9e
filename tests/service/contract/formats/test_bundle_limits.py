"""What is uploaded is bounded; what is stored is read whatever the bounds are."""

import pytest

from contract_files import line, refused, tar, tar_block, tar_entry
from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles, vocabularies
from service.contract.formats.bundles import validation


@pytest.fixture(autouse=True)
def few(monkeypatch):
    for name, value in {"SPLITS": 2, "REFERENCES": 3, "TOKENS": 4, "MEMBERS": 5}.items():
        monkeypatch.setattr(limits, name, value)


def _judged(path, lines, *entries):
    path.write_bytes(tar(tar_entry(b"captions.jsonl", b"".join(lines)), *entries))
    return validation.validate_bundle(path)


def _pax(number):
    return tar_entry(b"pax", b"", b"g") if number else b""


TOO_MANY = {
    "splits": (
        [line(str(n), split=str(n)) for n in range(3)],
        ("line 3, split", "one of 2 splits"),
    ),
    "references": (
        [line("a", references=["b"] * 4)],
        ("line 1, references", "at most 3", "found 4"),
    ),
    "words": ([line("a", references=["b", "a b c d e"])], ("references/1", "at most 4 words")),
    "signs": ([line("a", references=["((((("])], ("references/0", "at most 4 words and signs")),
}


@pytest.mark.parametrize("case", TOO_MANY)
def test_too_many_are_refused_with_line_and_field_and_read_if_they_are_stored(tmp_path, case):
    lines, told = TOO_MANY[case]
    path = tmp_path / "bundle.tar"
    refused(lambda: _judged(path, lines), InvalidBundle, *told)
    assert len(list(bundles.read_items(path))) == len(lines)


@pytest.mark.parametrize(
    "entries",
    [
        [tar_block(b"%d" % number, 0) for number in range(5)],
        [_pax(1)] * 11,
    ],
    ids=["files", "headers"],
)
def test_a_tar_of_too_many_files_is_refused(tmp_path, entries):
    path = tmp_path / "bundle.tar"
    words = ("expected at most 5 files", "found more")
    refused(lambda: _judged(path, [line()], *entries), InvalidBundle, *words)


def test_as_many_as_the_limits_say_are_accepted(tmp_path):
    lines = [line(str(n), split=str(n), references=["a b c d", "((((", "e"]) for n in range(2)]
    files = [tar_block(b"%d" % number, 0) for number in range(4)]
    found = _judged(tmp_path / "bundle.tar", lines, *files)
    assert found.splits == {str(n): {"images": 1, "references": 3} for n in range(2)}


def test_signs_count_as_words():
    assert not vocabularies.has_too_many_tokens("a-b c")
    assert vocabularies.has_too_many_tokens("a-b c d")
    assert not vocabularies.has_too_many_tokens("longer words than four")
