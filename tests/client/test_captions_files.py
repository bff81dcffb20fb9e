"""Captions in the files that people have: each format read alike, what is ambiguous refused."""

import json

import pytest
from typer.testing import CliRunner

import prescore
from prescore import commands
from prescore.files import captions

CAPTIONS = {"a.jpg": "a red square", "7": 'a "dog",\u2028not a cat'}
ROWS = [{"image": image, "caption": caption} for image, caption in CAPTIONS.items()]
FORMATS = {
    "results.json": json.dumps(ROWS),
    "res.json": json.dumps({image: [caption] for image, caption in CAPTIONS.items()}),
    "tokenized.json": json.dumps({n: [{"caption": c, "id": 1}] for n, c in CAPTIONS.items()}),
    "plain.json": json.dumps(CAPTIONS),
    "out.jsonl": "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in ROWS),
    "lines.json": "".join(
        json.dumps({"image_id": n, "caption": c}) + "\r\n" for n, c in CAPTIONS.items()
    ),
    "out.csv": "\ufeffmodel,image,caption\r\n"
    'm,a.jpg,a red square\r\nm,7,"a ""dog"",\u2028not a cat"\r\n',
    "out.tsv": 'image_id\tcaption\na.jpg\ta red square\n7\t"a ""dog"",\u2028not a cat"\n',
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(tmp_path, name):
    (tmp_path / name).write_text(FORMATS[name], encoding="utf-8", newline="")
    assert captions.looks_like_captions(tmp_path / name)
    assert captions.read(tmp_path / name) == ROWS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "gts.json",
            '{"a.jpg": ["a dog", "a cat"]}',
            "image 'a.jpg': expected one caption, found 2",
        ),
        ("res.json", '{"a.jpg": []}', "image 'a.jpg': expected one caption, found 0"),
        ("res.json", '{"a.jpg": [{"text": "a"}]}', "image 'a.jpg': expected .*found nothing"),
        ("res.json", '{"a": ["b"], "a": ["c"]}', "expected each name once, found 'a' twice"),
        ("coco.json", '{"images": [], "annotations": []}', "prescore convert coco"),
        ("one.jsonl", '{"image": "a", "caption": "b"}\n\n{"image": "c"', "line 3 is not JSON"),
        (
            "one.jsonl",
            '{"image": "a", "caption": "b"}\n{"image": "c"}',
            'line 2: expected "caption"',
        ),
        ("a.csv", "image,caption,caption\na,b,c\n", "line 1: expected one column `caption`"),
        ("a.csv", "image,image_id,caption\na,1,c\n", "line 1: expected one column `caption`"),
        ("a.csv", "a.jpg,a dog\n", "line 1: expected one column .* found 'a.jpg', 'a dog'"),
        ("a.csv", "image,caption\na.jpg,a dog, running\n", "line 2: expected 2 cells, found 3"),
        ("a.csv", 'image,caption\na.jpg,"a dog\n', "not CSV"),
        ("a.csv", "", "line 1: expected one column"),
    ],
)
def test_what_may_mean_two_things_is_refused_with_its_place(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(prescore.InvalidArgument, match=message) as error:
        captions.read(tmp_path / name)
    assert name in str(error.value)


def test_a_command_submits_them(service, shapes, quick, monkeypatch, tmp_path):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    path = tmp_path / "out.csv"
    path.write_text("image,caption\na.jpg,a square\n")
    result = CliRunner().invoke(commands.build(), ["submit", str(path), "--dataset", "shapes/test"])
    assert result.exit_code == 0, result.output
    [(request, _)] = service.submissions.values()
    assert request["captions"] == [{"image": "a.jpg", "caption": "a square"}]
