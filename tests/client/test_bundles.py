"""The tar that a folder becomes. Its readers here are not ours: tarfile and the service's own."""

import io
import json
import os
import shutil
import tarfile

import pytest

import prescore
from prescore.files import bundles
from service.contract.formats import bundles as service_bundles


def _bytes(folder):
    body = bundles.build_body(folder)
    content = b"".join(body.chunks())
    assert len(content) == body.size
    return content


@pytest.fixture
def bundle(tmp_path):
    """A folder with the captions of an image."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    line = {"image": "a.jpg", "split": "test", "references": ["a red square"]}
    (folder / "captions.jsonl").write_text(json.dumps(line) + "\n")
    return folder


@pytest.fixture
def rich(bundle):
    """With features and images, one of whose names is too long for a plain header."""
    (bundle / "features.safetensors").write_bytes(b"f" * 1000)
    (bundle / "images" / "deep").mkdir(parents=True)
    for name in ("b.jpg", "a.jpg", "deep/ü.jpg", "deep/" + "x" * 200 + ".jpg", "empty.jpg"):
        content = b"" if name == "empty.jpg" else name.encode() * 100
        (bundle / "images" / name).write_bytes(content)
    return bundle


def test_it_is_a_tar_in_order_without_times_and_owners(rich):
    """So that the same folder gives the same bytes on any machine."""
    (rich / "captions.jsonl").chmod(0o600)
    with tarfile.open(fileobj=io.BytesIO(_bytes(rich))) as archive:
        members = archive.getmembers()
        for member in members:
            assert archive.extractfile(member).read() == (rich / member.name).read_bytes()
    names = [member.name for member in members]
    assert names == sorted(names)
    assert len(names) == 7
    facts = {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members}
    assert facts == {(0, 0, 0, "", "", 0o644)}


def test_the_service_reads_it(rich, tmp_path):
    path = tmp_path / "sent.tar"
    path.write_bytes(_bytes(rich))
    assert set(service_bundles.member_names(path)) == set(service_bundles.member_names(rich))
    assert list(service_bundles.read_items(path)) == list(service_bundles.read_items(rich))


def test_what_is_no_part_of_a_bundle_stays_here_and_is_named(bundle, caplog):
    before = _bytes(bundle)
    (bundle / ".env").write_text("PRESCORE_KEY=secret")
    (bundle / "runs").mkdir()
    assert _bytes(bundle) == before
    assert "left out of the bundle: .env, runs" in caplog.text


def test_a_folder_without_captions_is_told(tmp_path):
    with pytest.raises(prescore.InvalidArgument, match=r"expected captions\.jsonl"):
        bundles.build_body(tmp_path)


@pytest.mark.parametrize("target", ["elsewhere", "elsewhere/secret"])
@pytest.mark.parametrize("place", ["captions.jsonl", "images", "images/x.jpg", "images/more"])
def test_links_are_not_followed_out_of_the_bundle(rich, tmp_path, place, target):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    path = rich / place
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / target)
    with pytest.raises(prescore.InvalidArgument, match="expected plain files"):
        bundles.build_body(rich)


def test_a_device_is_not_read(rich):
    os.mkfifo(rich / "images" / "pipe.jpg")
    with pytest.raises(prescore.InvalidArgument, match="expected plain files"):
        bundles.build_body(rich)


def test_a_name_that_is_no_text_is_told(rich):
    (rich / "images" / os.fsdecode(b"\xff.jpg")).write_bytes(b"x")
    with pytest.raises(prescore.InvalidArgument, match="not a name in Unicode"):
        bundles.build_body(rich)


def test_the_folder_is_asked_for_where_its_captions_are_named(bundle):
    with pytest.raises(prescore.InvalidArgument, match=f"name its folder, {bundle}"):
        bundles.build_body(bundle / "captions.jsonl")


def test_pictures_are_those_that_captions_name_and_none_from_outside_the_folder(tmp_path):
    """The names come from the service."""
    captions, folder = tmp_path / "captions.jsonl", tmp_path / "photos"
    names = ["b/1.jpg", "../secret", str(tmp_path / "secret"), "linked.jpg", "absent.jpg"]
    captions.write_text("".join(json.dumps({"image": name}) + "\n" for name in names))
    (folder / "b").mkdir(parents=True)
    for path in (folder / "b" / "1.jpg", folder / "unnamed.jpg", tmp_path / "secret"):
        path.write_bytes(b"a picture")
    (folder / "linked.jpg").symlink_to(tmp_path / "secret")
    found = bundles.list_files_with_pictures(captions, folder)
    assert found == {"captions.jsonl": captions, "images/b/1.jpg": folder / "b" / "1.jpg"}
