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
def rich(bundle):
    """With features and images, one of whose names is too long for a plain header."""
    (bundle / "features.safetensors").write_bytes(b"f" * 1000)
    (bundle / "images" / "deep").mkdir(parents=True)
    for name in ("b.jpg", "a.jpg", "deep/ü.jpg", "deep/" + "x" * 200 + ".jpg", "empty.jpg"):
        content = b"" if name == "empty.jpg" else name.encode() * 100
        (bundle / "images" / name).write_bytes(content)
    return bundle


def test_the_same_folder_gives_the_same_bytes(rich, tmp_path):
    copy = tmp_path / "copy"
    (copy / "images" / "deep").mkdir(parents=True)
    for path in sorted(rich.rglob("*"), reverse=True):
        if path.is_file():
            shutil.copyfile(path, copy / path.relative_to(rich))
    for number, path in enumerate(copy.rglob("*")):
        os.utime(path, (number * 1000, number * 1000.5))
    (copy / "captions.jsonl").chmod(0o600)
    assert _bytes(copy) == _bytes(rich)


def test_it_is_a_tar_in_order_without_times_and_owners(rich):
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


def test_a_folder_becomes_a_version_of_a_dataset_once(service, client, bundle):
    first = client.add_dataset("shapes", bundle)
    again = client.add_dataset("shapes", bundle)
    assert (first.name, first.version) == ("shapes", "v1")
    assert again == first
    assert first.splits["test"].images == 2
    assert first.splits["val"].references == 2
    assert service.datasets["shapes"][0][1] == _bytes(bundle)
    (bundle / "features.safetensors").write_bytes(b"more")
    assert str(client.add_dataset("shapes", bundle)) == "shapes@v2"
    assert len(service.seen("PUT", "datasets")) == 2


def test_a_tar_is_sent_as_it_is(service, client, bundle, tmp_path):
    path = tmp_path / "shapes.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(bundle / "captions.jsonl", "captions.jsonl")
    calls = []
    client.add_dataset("shapes", path, lambda *call: calls.append(call))
    assert service.datasets["shapes"][0][1] == path.read_bytes()
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)


def test_an_interrupted_folder_is_sent_again_whole(service, client, rich):
    (rich / "features.safetensors").write_bytes(bytes(4_000_000))
    service.fault("PUT", "/v1/datasets", cut_upload=2_000_000)
    service.fault("PUT", "/v1/datasets", lose="answer")
    assert str(client.add_dataset("shapes", rich)) == "shapes@v1"
    assert len(service.datasets["shapes"]) == 1
    assert len(service.seen("PUT")) == 3


def test_datasets_are_listed_page_by_page_and_found_by_version(service, client, bundle):
    for name in ("a", "b", "c", "d", "e"):
        client.add_dataset(name, bundle)
    assert [dataset.name for dataset in client.datasets()] == ["a", "b", "c", "d", "e"]
    pages = [path for _, path, _ in service.seen("GET") if path.partition("?")[0] == "/v1/datasets"]
    assert len(pages) == 3
    assert client.dataset("c").version == "v1"
    assert client.dataset("c@v1").features is None
    with pytest.raises(prescore.Refused, match="no dataset c@v2"):
        client.dataset("c@v2")


def test_an_older_version_is_found_too(service, client, bundle):
    first = client.add_dataset("shapes", bundle)
    text = (bundle / "captions.jsonl").read_text()
    (bundle / "captions.jsonl").write_text('{"image": "a", "split": "x", "references": ["b"]}\n')
    client.add_dataset("shapes", bundle)
    (bundle / "captions.jsonl").write_text(text)
    assert client.add_dataset("shapes", bundle) == first
    assert len(service.seen("PUT", "datasets")) == 2


def test_a_bundle_is_sent_where_a_version_has_another_digest(service, client, bundle):
    """A service may identify a version by something else than the bytes of its tar."""
    client.add_dataset("shapes", bundle)
    service.datasets["shapes"][0][0]["digest"] = "sha256:" + "0" * 64
    client.add_dataset("shapes", bundle)
    assert len(service.seen("PUT", "datasets")) == 2


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
