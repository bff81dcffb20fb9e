"""Tars (T45): members that are no plain files inside the bundle are refused and never followed."""

import os
import shutil
import subprocess
import time

import pytest

from helpers.contract_files import (
    line,
    pax_record,
    refused,
    tar,
    tar_block,
    tar_entry,
    with_checksum,
)
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles

CAPTIONS = tar_entry(b"captions.jsonl", line())


@pytest.fixture
def read(tmp_path):
    """Names, images and features of a tar made of these bytes."""

    def act(content):
        path = tmp_path / "bundle.tar"
        path.write_bytes(content)
        names = list(bundles.member_names(path))
        images = [item.image for item in bundles.read_items(path)]
        return names, images, bundles.read_features_header(path)

    return act


def pax(*records, kind=b"x"):
    return tar_entry(b"pax", b"".join(pax_record(*record) for record in records), kind)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        *(
            (tar_entry(name), (f"{name.decode()!r} is not a name inside the bundle",))
            for name in (b"../x", b"a/../../x", b"/etc/passwd", b"//x", b"..", b"a\\b", b"C:\\x")
        ),
        (tar_entry(b"a\xff"), (r"'a\udcff' is not a name inside",)),
        (tar_entry(b"a\nb"), (r"'a\nb' is not a name inside",)),
        (tar_entry(b"../x/", kind=b"5"), ("'../x' is not a name inside",)),
        (tar_entry(b"x", kind=b"2", link=b"/etc/passwd"), ("'x' is a link, a device or sparse",)),
        (tar_entry(b"x", kind=b"1", link=b"captions.jsonl"), ("'x' is a link",)),
        *(
            (tar_entry(b"x", kind=kind), ("'x' is a link, a device or sparse", "plain files"))
            for kind in (b"3", b"4", b"6", b"7", b"D", b"K", b"M", b"N", b"S", b"V", b"Z", b"\xff")
        ),
        (tar_entry(b"x", b"data", kind=b"5"), ("'x' is a link, a device or sparse",)),
        (tar_entry(b""), ("'.' is a link",)),
        (tar_entry(b"./"), ("'.' is a link",)),
        (tar_entry(b"captions.jsonl", line("b")), ("'captions.jsonl' is in the bundle twice",)),
        (tar_entry(b"./captions.jsonl"), ("'captions.jsonl' is in the bundle twice",)),
        (tar_entry(b"a/x") + tar_entry(b"a//./x"), ("'a/x' is in the bundle twice",)),
        (pax((b"path", b"../x")) + tar_entry(b"ok"), ("'../x' is not a name inside",)),
        (pax((b"path", b"a\0b")) + tar_entry(b"ok"), (r"'a\x00b' is not a name inside",)),
        (pax((b"path", b"a\xff")) + tar_entry(b"ok"), (r"'a\udcff' is not a name inside",)),
        (tar_entry(b"L", b"/x\0", b"L") + tar_entry(b"ok"), ("'/x' is not a name inside",)),
    ],
)
def test_a_member_that_is_no_plain_file_inside_the_bundle_is_refused(members, words, read):
    for content in (tar(CAPTIONS, members), tar(members, CAPTIONS)):
        refused(lambda content=content: read(content), InvalidBundle, *words)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        *(
            (pax((key, b"1")) + tar_entry(b"x"), ("expected plain files", repr(key)))
            for key in (b"GNU.sparse.map", b"GNU.sparse.major", b"GNU.sparse.size", b"hdrcharset")
        ),
        (pax((b"path", b"x"), kind=b"g"), ("expected plain files", "b'path'")),
        (pax((b"size", b"1"), kind=b"g"), ("expected plain files", "b'size'")),
        (tar_entry(b"p", b"5 a=b\n", b"x") + tar_entry(b"x"), ("expected a pax record, found",)),
        (tar_entry(b"p", b"1" * 60_000, b"x") + tar_entry(b"x"), ("a pax record", "111")),
        (tar_entry(b"p", b"6 a=b\n0 ", b"x") + tar_entry(b"x"), ("a pax record, found b'0 '",)),
        (tar_entry(b"p", b"99 a=b\n", b"x") + tar_entry(b"x"), ("a pax record",)),
        (pax((b"size", b"-512")) + tar_entry(b"x"), ("the size of the file", "b'-512'")),
        (pax((b"size", b"9" * 18)) + tar_entry(b"x"), ("the tar is cut off", "byte 10000000")),
        (pax((b"size", b"9" * 5000)) + tar_entry(b"x"), ("the size of the file", "b'999")),
        (tar_block(b"x", -1024), ("the size of the file at byte 1024", r"b'\xff")),
        (tar_block(b"x", 2**40), ("the tar is cut off", "'x' ends at byte")),
        (tar_block(b"p", 2**40, b"x"), ("the tar is cut off", "'p' ends at byte")),
        (tar_entry(b"p", bytes(100_001), b"x"), ("at most 100000 bytes", "100001")),
        (pax((b"a", b"b")) * 2 + tar_entry(b"x"), ("one extended header for a file", "a second")),
        (pax((b"a", b"b")) * 3000 + tar_entry(b"x"), ("one extended header for a file",)),
        (tar_entry(b"L", b"y\0", b"L") * 3000 + tar_entry(b"x"), ("one extended header for",)),
        (pax((b"a", b"b")), ("expected a file after", "found the end of the tar")),
        (with_checksum(tar_block(b"x", 0)[:124] + b"0x1         " + tar_block(b"x", 0)[136:]),
         ("expected an uncompressed, complete tar", "invalid header at byte 1024")),
        (with_checksum(tar_block(b"x", 0)[:124] + b"1_000       " + tar_block(b"x", 0)[136:]),
         ("the size of the file", "1_000")),
    ],
)  # fmt: skip
def test_a_header_that_claims_what_is_not_there_or_says_it_oddly_is_refused(members, words, read):
    refused(lambda: read(tar(CAPTIONS, members)), InvalidBundle, *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("expected an uncompressed, complete tar", "empty header", "byte 0")),
        (b"\1" * 300, ("expected an uncompressed, complete tar", "truncated header", "byte 0")),
        (CAPTIONS, ("expected an uncompressed, complete tar", "empty header at byte 1024")),
        (CAPTIONS + bytes(511), ("uncompressed, complete tar", "truncated header at byte 1024")),
        (CAPTIONS[:-1], ("the tar is cut off", "'captions.jsonl' ends at byte 1024", "1023")),
        (CAPTIONS[:700], ("the tar is cut off", "the file has 700")),
        (tar(CAPTIONS, b"\1" * 512), ("uncompressed, complete tar", "header at byte 1024")),
        (tar(CAPTIONS, b"y" + tar_entry(b"x")[1:]), ("complete tar", "bad checksum at byte 1024")),
        (bytes(1024), ("expected a file 'captions.jsonl'", "found none")),
    ],
)
def test_a_tar_that_is_none_or_cut_off_or_damaged_is_refused_with_the_place(content, words, read):
    refused(lambda: read(content), InvalidBundle, *words)


def test_every_place_to_cut_a_tar_is_noticed(read):
    whole = tar(CAPTIONS, tar_entry(b"images/a.jpg", b"x" * 600), tar_entry(b"b", b""))
    names, images, _ = read(whole)
    assert (names, images) == (["captions.jsonl", "images/a.jpg", "b"], ["a.jpg"])
    for end in range(0, len(whole) - 512, 64):
        refused(lambda end=end: read(whole[:end]), InvalidBundle)
    assert read(whole[:-512])[0] == names


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar command")
@pytest.mark.parametrize("dialect", ["v7", "oldgnu", "gnu", "ustar", "pax"])
def test_tars_that_the_tar_command_writes_are_read(dialect, tmp_path):
    longest = {"v7": "n" * 80, "ustar": "folder/" * 15 + "x"}  # in the prefix of its header
    long = f"images/{longest.get(dialect, 'é' * 110)}.jpg"
    folder = tmp_path / "folder"
    (folder / long).parent.mkdir(parents=True)
    (folder / "captions.jsonl").write_bytes(line("é"))
    (folder / long).write_bytes(b"image")
    path = tmp_path / "bundle.tar"
    subprocess.run(["tar", f"--format={dialect}", "-C", folder, "-cf", path, "."], check=True)
    assert sorted(bundles.member_names(path)) == ["captions.jsonl", long]
    assert [item.image for item in bundles.read_items(path)] == ["é"]
    with bundles.open_member(path, long) as stream:
        assert stream.read() == b"image"


def test_a_global_header_of_a_comment_is_passed_over(read):
    """`git archive` writes one."""
    assert read(tar(pax((b"comment", b"abc"), kind=b"g"), CAPTIONS))[1] == ["a.jpg"]


def test_a_size_in_an_extended_header_counts_and_one_in_base_256_too(read):
    text = line("a") + line("b")
    padded = text + bytes(-len(text) % 512)
    size = pax((b"size", b"%d" % len(text)))
    assert read(tar(size + tar_block(b"captions.jsonl", 0) + padded))[1] == ["a", "b"]
    binary = b"\x80" + len(text).to_bytes(11, "big")
    block = tar_block(b"captions.jsonl", 0)
    block = with_checksum(block[:124] + binary + block[136:])
    assert read(tar(block + padded))[1] == ["a", "b"]


MANY = {
    "long values": lambda n: pax((b"a", b"1" * 30_000)) + tar_entry(b"%d" % n),
    "long names": lambda n: tar_entry(b"L", b"%d" % n + b"x" * 30_000, b"L") + tar_entry(b"x"),
    "global headers": lambda n: pax((b"%d" % n, b"1" * 30_000), kind=b"g"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", MANY)
def test_many_headers_take_time_in_proportion(case, read):
    """6 MB of each. The standard library's reader needs hours for some, or its stack ends."""
    content = tar(CAPTIONS, *map(MANY[case], range(200)))
    start = time.process_time()
    assert read(content)[1] == ["a.jpg"]
    assert time.process_time() - start < 1


def test_what_lies_behind_the_end_mark_is_not_part_of_the_bundle(read):
    assert read(tar(CAPTIONS) + tar(tar_entry(b"captions.jsonl", line("z"))))[1] == ["a.jpg"]


def test_a_bundle_that_is_not_there_is_refused(tmp_path):
    for path in (tmp_path / "no", tmp_path / "a\0b"):
        refused(lambda path=path: list(bundles.read_items(path)), InvalidBundle, "found nothing at")
    os.mkfifo(tmp_path / "pipe")
    refused(lambda: list(bundles.read_items(tmp_path / "pipe")), InvalidBundle, "found nothing at")
