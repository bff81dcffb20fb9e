"""What identifies a bundle, by coreutils; and captions that are read from a bundle or alone."""

import hashlib
import io
import subprocess

import pytest

from helpers.contract_files import line, lines, refused, tar, tar_entry
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import files
from service.contract.formats.bundles.files import compute_content_digests

CAPTIONS = lines([line("a.jpg"), line("b.jpg", split="val")])
FILES = {
    "captions.jsonl": CAPTIONS,
    "features.safetensors": b"read by others",
    "images/b/é.jpg": b"a picture",
    "images/a.jpg": b"another",
}


@pytest.fixture
def folder(tmp_path):
    for name, data in FILES.items():
        file = tmp_path / "folder" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "folder"


def _tar(path, names):
    entries = (tar_entry(name.encode(), FILES.get(name, b"more")) for name in names)
    path.write_bytes(tar(*entries))
    return path


def test_the_content_is_what_sha256sum_says_of_the_files(folder):
    command = ["sha256sum", *sorted(FILES, key=str.encode)]
    listed = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    copy = io.BytesIO()
    found = compute_content_digests(folder, copy)
    assert copy.getvalue() == CAPTIONS
    assert found.whole == f"sha256:{hashlib.sha256(listed).hexdigest()}"
    assert found.captions == f"sha256:{hashlib.sha256(CAPTIONS).hexdigest()}"


@pytest.mark.parametrize(
    "names",
    [[*FILES], [*reversed(FILES)], [*FILES, "README", "more/captions.jsonl", "image"]],
    ids=["as listed", "reversed", "with others"],
)
def test_order_and_other_files_do_not_count(folder, tmp_path, names):
    packed = _tar(tmp_path / "bundle.tar", names)
    assert compute_content_digests(packed) == compute_content_digests(folder)


@pytest.mark.parametrize("without", [*FILES][1:])
def test_each_file_counts(folder, without):
    whole = compute_content_digests(folder)
    (folder / without).rename(folder / f"{without}x" if "/" in without else folder / "x")
    changed = compute_content_digests(folder)
    assert changed.whole != whole.whole
    assert changed.captions == whole.captions


def test_a_bundle_without_captions_has_no_content(tmp_path):
    path = _tar(tmp_path / "bundle.tar", ["features.safetensors", "in/captions.jsonl"])
    words = ("expected a file 'captions.jsonl'", "one in the folder 'in'")
    refused(lambda: compute_content_digests(path), InvalidBundle, *words)


def test_captions_are_read_from_a_folder_a_tar_and_alone(folder, tmp_path):
    bundle = _tar(tmp_path / "bundle.tar", FILES)
    alone = folder / "captions.jsonl"
    for path in (folder, bundle, alone):
        assert [item.image for item in files.read_captions_split(path, "val")] == ["b.jpg"]
        assert b"".join(files.read_captions_in_chunks(path)) == CAPTIONS
        refused(lambda path=path: files.read_captions_split(path, "x"), InvalidBundle, "test, val")
    refused(lambda: bundles.read_split(alone, "val"), InvalidBundle, "name its folder")


def test_a_tar_is_a_tar_whatever_its_first_file_is_called(tmp_path):
    path = tmp_path / "bundle.tar"
    odd = tar_entry(b'{"image": "a.jpg"}', b"x")
    path.write_bytes(tar(odd, tar_entry(b"captions.jsonl", CAPTIONS)))
    assert [item.image for item in files.read_captions_split(path, "test")] == ["a.jpg"]
