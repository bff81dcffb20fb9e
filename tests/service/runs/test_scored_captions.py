"""Captions are read from any of them on, whatever is in them and however they were written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.contract.errors import BlobDamaged
from service.runs import scored_captions

CAPTION = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['"], [1, "', "\\", '\\"', "]]", "a" * 300_000, "😀"]
)


@pytest.mark.long
@settings(max_examples=30)
@given(st.lists(CAPTION, max_size=20), st.booleans(), st.sampled_from([7, 100, 1 << 18]))
def test_captions_are_read_as_json_reads_them(tmp_path_factory, captions, ascii_, chunk):
    path = tmp_path_factory.mktemp("captions") / "file"
    path.write_text(json.dumps(list(enumerate(captions)), ensure_ascii=ascii_), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            scored_captions,
            "_CHUNK",
            chunk if len(max(captions, key=len, default="")) < 99 else 1 << 18,
        )
        found = list(scored_captions.read_pairs(path))
        assert [(pair.place, pair.caption) for pair in found] == list(enumerate(captions))
        for at, pair in enumerate(found[:-1]):
            rest = scored_captions.read_pairs(path, pair.following)
            assert [each.caption for each in rest] == captions[at + 1 :]
        assert [pair.following for pair in found[-1:]] in ([None], [])
        index = scored_captions.index_pairs(path)
        assert list(index.places) == list(range(len(captions)))
        backwards = range(len(captions))[::-1]
        assert index.read(backwards) == found[::-1]


@pytest.mark.parametrize("start", [1, 3, 10_000])
def test_where_no_caption_begins_none_is_read(tmp_path, start):
    (tmp_path / "file").write_text('[[0, "a b"], [1, "c"]]')
    with pytest.raises(BlobDamaged, match="found none at byte"):
        list(scored_captions.read_pairs(tmp_path / "file", start + 1))
