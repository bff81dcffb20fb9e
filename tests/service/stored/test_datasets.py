"""Datasets in pages, and a dataset of which the images' file is missing."""

import pytest

from helpers import stored_records
from helpers.contract_files import line, tar, tar_entry
from service.stored import datasets


def test_pages_of_datasets_neither_repeat_nor_skip(on_either):
    names = ["b", "a", "a.c", "a", "b", "A", "b"]
    for at, name in enumerate(names):
        stored_records.add_version(on_either, name, f"sha256:{at:064}")
    whole, more = datasets.list_versions(on_either, 100)
    assert not more
    assert len(whole) == len(names)
    assert [item.version for item in whole if item.name == "b"] == ["v3", "v2", "v1"]
    found, more = datasets.list_versions(on_either, 2)
    pages = [found]
    while more:
        found, more = datasets.list_versions(
            on_either, 2, (found[-1].name, int(found[-1].version[1:]))
        )
        pages.append(found)
    assert [len(page) for page in pages] == [2, 2, 2, 1]
    assert [item for page in pages for item in page] == whole


@pytest.mark.processes
def test_what_was_stored_without_a_file_of_its_images_is_read_all_the_same(on_either, blobs):
    """It has more references than are accepted, too."""
    lines = [line(f"{at}.jpg", references=["a cat"] * 200, id=at) for at in range(3)]
    digest = blobs.put(tar(tar_entry(b"captions.jsonl", b"".join(lines))))
    facts = {"splits": {"test": {"images": 3, "references": 600}}, "features": None}
    stored_records.add_version(on_either, "old", digest, facts)
    for _ in range(2):
        split = datasets.open_pinned_split(blobs, datasets.pin_split(on_either, "old/test"))
        assert [item.image for item in split.items] == ["0.jpg", "1.jpg", "2.jpg"]
        with split.places() as places:
            assert places["2"] == 2
        assert len(split.items[1].references) == 200
