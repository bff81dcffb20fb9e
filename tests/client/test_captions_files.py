"""Captions in the files that people have: each format read alike, what is ambiguous refused."""

import json

import pytest

import prescore
from prescore.files import captions

CAPTIONS = {"a.jpg": "a red square", "7": 'a "dog",\u2028not a cat'}
ROWS = [{"image": image, "caption": caption} for image, caption in CAPTIONS.items()]
FORMATS = {
    "results.json": json.dumps(ROWS),
    "with_more.json": "\ufeff" + json.dumps([{**row, "score": -1.5, "id": 1} for row in ROWS]),
    "res.json": json.dumps({image: [caption] for image, caption in CAPTIONS.items()}),
    "tokenized.json": json.dumps({n: [{"caption": c, "id": 1}] for n, c in CAPTIONS.items()}),
    "plain.json": json.dumps(CAPTIONS),
    "out.jsonl": "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in ROWS),
    "lines.json": "".join(
        json.dumps({"image_id": n, "caption": c}) + "\r\n" for n, c in CAPTIONS.items()
    ),
    "out.csv": "\ufeffmodel,image,caption\r\n"
    'm,a.jpg,a red square\r\nm,7,"a ""dog"",\u2028not a cat"\r\n',
    "semicolons.csv": 'image;caption\na.jpg;a red square\n7;"a ""dog"",\u2028not a cat"\n',
    "tabs.csv": 'image\tcaption\na.jpg\ta red square\n7\t"a ""dog"",\u2028not a cat"\n',
    "Capitals.CSV": 'Image,Caption\na.jpg,a red square\n7,"a ""dog"",\u2028not a cat"\n',
    "table.txt": 'image;caption\na.jpg;a red square\n7;"a ""dog"",\u2028not a cat"\n',
    "out.tsv": 'image_id\tcaption\na.jpg\ta red square\n7\t"a ""dog"",\u2028not a cat"\n',
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(tmp_path, name):
    (tmp_path / name).write_text(FORMATS[name], encoding="utf-8", newline="")
    assert captions.looks_like_captions(tmp_path / name)
    assert captions.read_captions(tmp_path / name) == ROWS


@pytest.mark.parametrize("name", ["results.json", "out.csv", "tabs.csv", "lines.json"])
@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told_by_its_first_bytes(tmp_path, name, code):
    path = tmp_path / "exported.txt"
    path.write_text("\ufeff" + FORMATS[name].removeprefix("\ufeff"), encoding=code, newline="")
    assert captions.read_captions(path) == ROWS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "gts.json",
            '{"a.jpg": ["a dog", "a cat"]}',
            "image 'a.jpg': expected one caption, found 2",
        ),
        (
            "both.json",
            '[{"image": "a.jpg", "image_id": 7, "caption": "a dog"}]',
            'item 1: expected "image" or "image_id", found both',
        ),
        ("list.json", '["two"]', "item 1: expected an object, found the text 'two'$"),
        ("res.json", '{"a.jpg": []}', "image 'a.jpg': expected one caption, found 0"),
        ("res.json", '{"a.jpg": [{"text": "a"}]}', "image 'a.jpg': expected .*found nothing"),
        ("res.json", '{"a": ["b"], "a": ["c"]}', "expected each name once, found 'a' twice"),
        ("coco.json", '{"images": [], "annotations": []}', "prescore convert coco"),
        (
            "one.jsonl",
            '{"image": "a", "caption": "b"}\n\n{"image": "c", "capt',
            r"one\.jsonl, line 3 is not JSON: it ends before it is whole: is it cut off\?$",
        ),
        (
            "one.jsonl",
            '{"image": "a", "caption": "b"}\n{"image": "c" "caption": "d"}\n',
            r"one\.jsonl, line 2 is not JSON: Expecting ',' delimiter at column 15$",
        ),
        ("a.json", "[\n1 2]", "the file is not JSON: Expecting ',' delimiter at line 2, column 3$"),
        ("a.json", "", "expected captions, .*; found an empty file$"),
        ("a.json", '[{"image": "a", "caption": null}]', 'expected "caption", a text, found null$'),
        ("a.json", '[{"image": null, "caption": "b"}]', "or a whole number, found null$"),
        ("a.json", '[null, {"image": "a"}]', "item 1: expected an object, found null$"),
        (
            "a.json",
            '[{"image": "a", "captoin": "b"}]',
            r"it has 'image', 'captoin'; did you mean caption\?$",
        ),
        (
            "a.json",
            '[{"imag": "a", "caption": "b"}]',
            r"it has 'imag', 'caption'; did you mean image or image_id\?$",
        ),
        (
            "a.json",
            '[{"file": "a", "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}]',
            "whole number, found nothing; it has 'file', 'b', 'c', 'd', 'e', …$",
        ),
        ("a.csv", "image,caption,caption\na,b,c\n", "line 1: expected one column `caption`"),
        ("a.csv", "image,image_id,caption\na,1,c\n", "line 1: expected one column `caption`"),
        ("a.csv", "a.jpg,a dog\n", "line 1: expected one column .* found 'a.jpg', 'a dog'"),
        ("a.csv", "image,caption\na.jpg,a dog, running\n", "line 2: expected 2 cells, found 3"),
        ("a.csv", 'image,caption\na.jpg,"a dog\n', "not CSV"),
        ("a.csv", "image;caption\na.jpg;a dog; running\n", "found 3: a text with ';' in it stands"),
        ("a.csv", "", "expected captions, .*; found an empty file$"),
        (
            "a.csv",
            "file_name;text\na.jpg;a dog\n",
            "found 'file_name', 'text': name 'file_name' image and 'text' caption$",
        ),
        ("a.csv", "image,capton\na.jpg,a dog\n", "found 'image', 'capton': name 'capton' caption$"),
        (
            "a.tsv",
            "a.jpg\ta dog\n",
            "found 'a.jpg', 'a dog': write a line .* above it, such as image,caption$",
        ),
        ("a.csv", ",".join("abcdefghijklm"), "'j' and 3 more$"),
        (
            "own.txt",
            "a dog runs\na cat\n",
            "expected captions, each with the name of its image, as .* begins with 'a dog runs'$",
        ),
        ("a.json", "[" * 100_000, "is not JSON"),
    ],
)
def test_what_may_mean_two_things_is_refused_with_its_place(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(prescore.InvalidArgument, match=message) as error:
        captions.read_captions(tmp_path / name)
    assert name in str(error.value)


def test_text_in_another_code_says_where_and_what_to_do(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("image,caption\na.jpg,un café\n".encode("latin-1"))
    with pytest.raises(prescore.InvalidArgument, match=r"not text in UTF-8.*: byte 27 .* as UTF-8"):
        captions.read_captions(path)
