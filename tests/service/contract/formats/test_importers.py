"""Captions as others publish them: read unchanged, or refused with file, line and field."""

import gzip
import json
from functools import partial

import pytest

from helpers.contract_files import refused
from service.contract.errors import InvalidBundle
from service.contract.formats import importers
from service.contract.formats.bundles import BundleItem

TOKENS = (
    "b.jpg#0\tA dog .\nb.jpg#1\tTwo dogs\t! \r\n"
    "c.jpg.1#0\tcaf\u00e9 \u2028 \x85 \x0b one line\na.jpg#0\tA cat\rsits\n"
)
ODD = "\u200f😀 a\rb\u2028c ||| "


@pytest.fixture
def put(tmp_path):
    def act(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return act


def flickr(put, tokens=TOKENS, listing="a.jpg\nb.jpg\n", name="Flickr8k.token.txt"):
    return list(importers.read_flickr8k(put(name, tokens), {"test": put("test.txt", listing)}))


def test_flickr8k_gives_the_listed_images_in_the_lists_order(put):
    splits = {"test": put("test.txt", "a.jpg\r\nb.jpg"), "val": put("val.txt", "c.jpg.1\n")}
    expected = [
        BundleItem("a.jpg", "test", ("A cat\rsits",)),
        BundleItem("b.jpg", "test", ("A dog .", "Two dogs\t! ")),
        BundleItem("c.jpg.1", "val", ("caf\u00e9 \u2028 \x85 \x0b one line",)),
    ]
    assert list(importers.read_flickr8k(put("tokens.txt", TOKENS), splits)) == expected
    packed = put("tokens.txt.gz", gzip.compress(TOKENS.encode()))
    assert list(importers.read_flickr8k(packed, splits)) == expected


@pytest.mark.parametrize(
    ("tokens", "listing", "words"),
    [
        (TOKENS, "a.jpg\nz.jpg\n", ("test.txt, line 2", "'z.jpg' has no caption in Flickr8k")),
        (TOKENS, "a.jpg\n\n", ("test.txt, line 2", "'' has no caption")),
        (TOKENS, b"a.jpg\n\xff\n", ("test.txt, line 2", "not UTF-8")),
        (TOKENS + "a.jpg A cat\n", "a.jpg", ("Flickr8k.token.txt, line 5", "found 'a.jpg A cat'")),
        (TOKENS + "#0\tA\n", "a.jpg", ("line 5", "image#number TAB")),
        (TOKENS.encode() + b"a#0\t\xff\n", "a.jpg", ("Flickr8k.token.txt, line 5", "not UTF-8")),
    ],
)  # fmt: skip
def test_flickr8k_files_that_do_not_fit_are_refused_with_file_and_line(put, tokens, listing, words):
    refused(lambda: flickr(put, tokens, listing), InvalidBundle, *words)


@pytest.mark.parametrize("damage", ["cut", "plain", "flipped", "checksum"])
def test_a_gzip_file_that_is_none_or_damaged_is_refused(put, damage):
    packed = gzip.compress(TOKENS.encode() * 100)
    content = {
        "cut": packed[:-12],
        "plain": TOKENS.encode(),
        "flipped": packed[:20] + bytes([packed[20] ^ 255]) + packed[21:],
        "checksum": packed[:-5] + b"\0" + packed[-4:],
    }[damage]
    for read, name in ((flickr, "tokens.txt.gz"), (karpathy, "k.json.gz")):
        act = partial(read, put, content, name=name)
        refused(act, InvalidBundle, f"{name}: expected a whole gzip file")


def karpathy_image(**fields):
    sentences = [{"raw": ODD, "tokens": ["a"]}, {"raw": ""}]
    return {"filename": "a.jpg", "split": "restval", "sentences": sentences, **fields}


def karpathy(put, document, name="dataset.json"):
    text = document if isinstance(document, (str, bytes)) else json.dumps(document)
    return list(importers.read_karpathy(put(name, text)))


def test_karpathys_splits_and_ids_are_kept_and_captions_come_unchanged(put):
    images = [
        karpathy_image(cocoid=391895, imgid=5),
        karpathy_image(filename="b.jpg", split="test"),
        karpathy_image(filename="c.jpg", split="val", cocoid="x-1"),
    ]
    assert karpathy(put, {"dataset": "coco", "images": images}) == [
        BundleItem("a.jpg", "restval", (ODD, ""), "391895"),
        BundleItem("b.jpg", "test", (ODD, ""), None),
        BundleItem("c.jpg", "val", (ODD, ""), "x-1"),
    ]


def coco(put, document, name="captions_val.json"):
    text = document if isinstance(document, (str, bytes)) else json.dumps(document)
    return list(importers.read_coco(put(name, text), "val"))


def coco_document(images=None, annotations=None):
    usual = [(8, "one"), (9, ODD), (8, "")]
    captions = [
        {"image_id": id_, "id": at, "caption": said} for at, (id_, said) in enumerate(usual)
    ]
    pictures = [{"id": 9, "file_name": "b.jpg"}, {"id": 8, "file_name": "a.jpg"}]
    return {"images": images or pictures, "annotations": annotations or captions}


def test_cocos_annotations_are_joined_by_image_in_the_order_of_images(put):
    first = BundleItem("b.jpg", "val", (ODD,), "9")
    expected = [first, BundleItem("a.jpg", "val", ("one", ""), "8")]
    assert coco(put, coco_document()) == expected
    packed = gzip.compress(json.dumps(coco_document()).encode())
    assert coco(put, packed, "captions.json.gz") == expected


@pytest.mark.parametrize("read", [karpathy, coco])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("x.json: expected JSON",)),
        ('{"images": [], "images": []}', ("x.json: expected every key once", "'images' 2 times")),
        (b'{"images": "\xff"}', ("x.json: not UTF-8", "byte 12")),
        ('{"images": []}'.encode("utf-16"), ("x.json", "a text in UTF-16: save it as UTF-8")),
        ("[]", ("x.json: expected a field", "found []")),
        ("{}", ("x.json: expected a field", "found {}")),
        ('{"images": {}, "annotations": {}}', ("x.json: expected", "to be a list, found {}")),
        ('{"images": [5], "annotations": [5]}', ("x.json, ", "[0]: expected a field", "found 5")),
    ],
)
def test_json_that_is_not_what_it_should_be_is_refused_by_the_files_name(put, read, text, words):
    refused(lambda: read(put, text, "x.json"), InvalidBundle, *words)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"filename": 5}, ("expected 'filename' to be a text, found 5",)),
        ({"sentences": "a"}, ("expected 'sentences' to be a list, found 'a'",)),
        ({"sentences": []}, ("expected at least one of 'sentences', found none",)),
        ({"sentences": [{"raw": 5}]}, ("sentences[0]: expected 'raw' to be a text, found 5",)),
        ({"sentences": [{"raw": "a"}, {}]}, ("sentences[1]: expected a field 'raw', found {}",)),
        *(
            ({"cocoid": odd}, ("expected 'cocoid' to be a whole number or a text", f"{odd!r}"))
            for odd in (None, True, 1.5)
        ),
    ],
)
def test_a_wrong_field_of_karpathys_is_refused_with_its_image(put, fields, words):
    document = {"images": [karpathy_image(), karpathy_image(**fields)]}
    refused(lambda: karpathy(put, document), InvalidBundle, "dataset.json, images[1]", *words)


@pytest.mark.parametrize(
    ("image", "annotation", "words"),
    [
        ({"id": 7}, None, ("images[0]", "no annotation has image_id '7'")),
        ({"file_name": 5}, None, ("images[0]: expected 'file_name' to be a text, found 5",)),
        (None, {"caption": None}, ("annotations[0]: expected 'caption' to be a text",)),
        *(
            ({"id": odd}, None, ("images[0]: expected 'id' to be a whole", f"found {odd!r}"))
            for odd in (None, True, 8.0)
        ),
        *(
            (None, {"image_id": odd}, ("annotations[0]: expected 'image_id' to be a whole",))
            for odd in (True, [8])
        ),
    ],
)
def test_a_wrong_field_of_cocos_is_refused_with_its_place(put, image, annotation, words):
    document = coco_document(
        images=[{"id": 8, "file_name": "a.jpg", **(image or {})}],
        annotations=[{"image_id": 8, "caption": "x", **(annotation or {})}],
    )
    refused(lambda: coco(put, document), InvalidBundle, "captions_val.json, ", *words)


def test_an_id_is_the_same_as_a_number_and_as_text(put):
    annotations = [{"image_id": "8", "caption": "x"}, {"image_id": 8, "caption": "y"}]
    document = coco_document([{"id": 8, "file_name": "a.jpg"}], annotations)
    assert coco(put, document) == [BundleItem("a.jpg", "val", ("x", "y"), "8")]


def test_all_of_flickr8k_is_read(data):
    folder = data / "flickr8k"
    splits = {split: folder / f"Flickr_8k.{split}Images.txt" for split in ("train", "dev", "test")}
    items = list(importers.read_flickr8k(folder / "Flickr8k.token.txt.gz", splits))
    assert [sum(item.split == split for item in items) for split in splits] == [6000, 1000, 1000]
    assert all(len(item.references) == 5 for item in items)
