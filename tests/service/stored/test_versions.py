"""Versions by their content, on either database and in either store."""

import hashlib

import pytest

from helpers.contract_files import line, tar, tar_entry
from service.contract.formats.bundles.files import compute_content_digests
from service.stored import dataset_versions, datasets

FACTS = {"splits": {"test": {"images": 1, "references": 1}}, "features": None}
CAPTIONS = line("a.jpg")


@pytest.fixture
def put(on_either, blobs, tmp_path):
    """Puts a bundle of these files, in their order, as a route does."""

    def put(files):
        data = tar(*(tar_entry(name.encode(), data) for name, data in files.items()))
        captions, images = tmp_path / "captions", tmp_path / "images"
        images.write_bytes(b"")
        with blobs.upload() as upload:
            upload.write(data)
            with captions.open("wb") as copy:
                content = compute_content_digests(upload.path, copy)
            arrived = dataset_versions.JudgedBundle(upload, FACTS, content, captions, images)
            return dataset_versions.store_version(on_either, blobs, "d", arrived)

    return put


def test_what_was_lost_is_stored_again_by_the_same_or_by_another_tar(put, blobs, on_either):
    files = {"captions.jsonl": CAPTIONS, "images/a": b"a picture"}
    first, _ = put(files)
    _lose(blobs, first.digest, first.captions)
    assert put(files) == (first, False)
    _lose(blobs, first.digest, first.captions)
    again, is_new = put(dict(reversed(files.items())))
    assert is_new
    assert again.content == first.content
    assert blobs.has(again.digest)
    ours, theirs = (
        datasets.pin_split(on_either, f"d@{one.version}/test") for one in (first, again)
    )
    assert ours.has_references_of(theirs)
    assert blobs.has(theirs.captions)


def test_two_that_come_at_once_are_one_version(on_either, tmp_path):
    """What is found before the object is stored is looked for again in the transaction."""
    digests = [f"sha256:{at:064}" for at in range(2)]
    content = compute_content_digests(_written(tmp_path / "captions.jsonl"))
    found = [
        dataset_versions.add_dataset_version(on_either, "d", digest, FACTS, content)
        for digest in digests
    ]
    assert [is_new for _, is_new in found] == [True, False]
    assert found[0][0] == found[1][0]


def test_the_latest_version_with_the_features_and_the_captions_is_taken(on_either):
    versions = [("a", "vgg"), ("b", "vgg"), ("b", "vgg"), ("b", "clip"), ("b", None)]
    for at, (captions, encoder) in enumerate(versions):
        digests = _digest(f"{at}".encode()), _digest(captions.encode())
        content = dataset_versions.ContentDigests(*digests)
        facts = FACTS | {"features": encoder and _features(encoder)}
        dataset_versions.add_dataset_version(on_either, "d", f"sha256:{at:064}", facts, content)
    latest = datasets.pin_split(on_either, "d/test")
    wanted = {"vgg": 3, "clip": 4, "other": 5}
    for encoder, version in wanted.items():
        assert datasets.pin_with_features(on_either, latest, _features(encoder)).version == version
    assert (
        datasets.pin_with_features(on_either, latest, _features("vgg") | {"size": 9}).version == 5
    )


def _features(encoder):
    return {"encoder": {"name": encoder, "digest": "none"}, "size": 5}


def _written(path):
    path.write_bytes(CAPTIONS)
    return path.parent


def _digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _lose(blobs, *digests):
    for digest in digests:
        assert blobs.delete_old(digest, float("inf"))
