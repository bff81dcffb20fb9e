"""Members of a bundle, in a folder and in a tar alike: what can be opened, and what cannot."""

import io
import os
from functools import partial

import pytest

from helpers.contract_files import line, refused, tar, tar_entry
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles

FILES = {"captions.jsonl": line(), "images/a.jpg": bytes(range(256)) * 40, "images/b/c": b""}


def test_members_are_listed_and_opened_by_name(bundle):
    path = bundle(FILES)
    assert sorted(bundles.member_names(path)) == sorted(FILES)
    for name, content in FILES.items():
        with bundles.open_member(path, name) as stream:
            assert stream.read() == content
            assert stream.read() == b""


def test_a_member_can_be_read_from_any_place_and_never_beyond_itself(bundle):
    content = FILES["images/a.jpg"]
    with bundles.open_member(bundle(FILES), "images/a.jpg") as stream:
        assert stream.seek(-5, os.SEEK_END) == len(content) - 5
        assert stream.read(100) == content[-5:]
        assert stream.seek(300) == 300
        assert stream.read(7) == content[300:307]
        assert stream.seek(10, os.SEEK_CUR) == stream.tell() == 317
        assert stream.readline() == io.BytesIO(content[317:]).readline()
        assert stream.seek(10**6) == 10**6
        assert stream.read() == b""
        stream.seek(0)
        assert list(stream) == list(io.BytesIO(content))


def test_two_members_are_read_in_turns(tmp_path):
    path = tmp_path / "bundle.tar"
    path.write_bytes(tar(*(tar_entry(name, name * 30_000) for name in (b"a", b"b"))))
    with bundles.open_member(path, "a") as a, bundles.open_member(path, "b") as b:
        for _ in range(3):
            assert (a.read(10_000), b.read(10_000)) == (b"a" * 10_000, b"b" * 10_000)


def _open(path, name):
    with bundles.open_member(path, name):
        pass


@pytest.mark.parametrize(
    "name",
    ["../secret", "images/../../secret", "/etc/passwd", "..", "a\0b", "images\\a.jpg", "a\nb"],
)
def test_no_name_leads_out_of_the_bundle(name, bundle, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    refused(partial(_open, bundle(FILES), name), InvalidBundle, "in", "the bundle")


@pytest.mark.parametrize(
    "name", ["nothing", "images", "images/a.jpg/x", "", ".", "images/" + "é" * 250]
)
def test_what_is_no_file_of_the_bundle_is_not_found(name, bundle):
    act = partial(_open, bundle(FILES), name)
    refused(act, InvalidBundle, "expected a file", "found none")


@pytest.fixture
def linked(tmp_path):
    """A folder with links to a file and to a folder outside of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "captions.jsonl").write_bytes(line("secret"))
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "captions.jsonl").symlink_to(outside / "captions.jsonl")
    (folder / "images").symlink_to(outside)
    return folder


@pytest.mark.parametrize("name", ["captions.jsonl", "images/captions.jsonl"])
def test_links_in_a_folder_are_not_followed(name, linked):
    refused(partial(_open, linked, name), InvalidBundle, "expected a file", "found none")
    refused(lambda: list(bundles.read_items(linked)), InvalidBundle, "found none")
    (linked / name.partition("/")[0]).rename(linked / "a")
    refused(lambda: list(bundles.member_names(linked)), InvalidBundle, "'a' is a link")


def test_a_folder_may_itself_be_reached_by_a_link(tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "captions.jsonl").write_bytes(line())
    (tmp_path / "link").symlink_to(tmp_path / "bundle")
    assert [item.image for item in bundles.read_items(tmp_path / "link")] == ["a.jpg"]


def test_pipes_and_names_that_are_no_text_in_a_folder_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "captions.jsonl")
    refused(lambda: list(bundles.read_items(tmp_path)), InvalidBundle, "found none")
    assert list(bundles.member_names(tmp_path)) == []
    (tmp_path / os.fsdecode(b"a\xff")).write_bytes(b"")
    refused(lambda: list(bundles.member_names(tmp_path)), InvalidBundle, r"'a\udcff' is not a name")
