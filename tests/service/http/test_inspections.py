"""Files of captions that are inspected: what `prescore score` would submit of them, and how that
fits a split.
"""

import csv
import io
import json
import re

import pytest

from helpers.fleet import bundle, bundle_of
from helpers.hostile_text import HOSTILE, REAL, check_plain
from helpers.submissions import run_command, serve_datasets
from prescore import Client, Refused
from prescore.files import captions
from service.access import keys
from service.contract import limits
from service.contract.askers import Scope
from service.contract.metrics import families
from service.engine.tables import runs

IMAGES = [f"{at}.jpg" for at in range(12)]
SAID = {image: f'w2 "w{at}", w3' for at, image in enumerate(IMAGES)}
ROWS = [{"image": image, "caption": caption} for image, caption in SAID.items()]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS)
OCTETS = {"content-type": "application/octet-stream"}


def _table(separator=",", heading=("image", "caption")):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerows([heading, *SAID.items()])
    return text.getvalue()


FILES = {  # by name: the format, and the bytes
    "results.json": ("COCO results", json.dumps(ROWS).encode()),
    "coco.json": (
        "COCO results",
        json.dumps(
            [{"image_id": 900 + at, "caption": SAID[IMAGES[at]]} for at in range(12)]
        ).encode(),
    ),
    "marked.json": ("COCO results", b"\xef\xbb\xbf" + json.dumps(ROWS).encode()),
    "out.jsonl": ("JSON Lines", LINES.encode()),
    "lines.json": ("JSON Lines", LINES.encode()),
    "one.jsonl": ("JSON Lines", json.dumps(ROWS[3]).encode()),
    "one.txt": ("JSON Lines", json.dumps(ROWS[3]).encode()),
    "out.csv": ("CSV", _table().encode()),
    "out.tsv": ("CSV", _table("\t", ("image_id", "caption")).encode()),
    "table.txt": ("CSV", _table(";").encode()),
    "wide.csv": ("CSV", _table().encode("utf-16")),
    "dictionary.json": (
        "captions by image",
        json.dumps({k: [v] for k, v in SAID.items()}).encode(),
    ),
    "plain.json": ("captions by image", json.dumps(SAID).encode()),
}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    odd = {"Straße/ä.jpg": ["w1 w2"], "日本 עברית": ["一只狗在草地上跑"]}
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle(12), odd=bundle_of(odd))


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client


def _inspect(client, content, name="results.json", dataset="tiny/test", headers=OCTETS):
    params = {"dataset": dataset, "file": name}
    return client.post("/v1/inspections", params=params, content=content, headers=headers)


def _found(client, rows, **more):
    answer = _inspect(client, json.dumps(rows).encode(), **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _refusal(client, content, **more):
    answer = _inspect(client, content, **more)
    assert answer.status_code == 422, answer.text
    check_plain(answer.json()["detail"])
    return answer.json()


@pytest.mark.parametrize("name", FILES)
def test_each_format_is_read_as_the_client_reads_it(client, tmp_path, name):
    told, content = FILES[name]
    (tmp_path / name).write_bytes(content)
    answer = _inspect(client, content, name)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["format"] == told
    assert found["captions"] == captions.read_captions(tmp_path / name)
    assert found["images"] == len(found["captions"])
    assert (found["of"], found["unknown"], found["unknown_count"]) == (12, [], 0)
    usual = [name for family in families.list_usual_families() for name in family_names(family)]
    assert set(found["metrics"]) <= set(usual)
    assert {"bleu_1", "bleu_4", "cider_d"} <= set(found["metrics"])


def family_names(family):
    return families.FAMILIES[family].names if family in families.FAMILIES else [family]


@pytest.mark.parametrize("name", ["coco.json", "out.jsonl", "wide.csv", "dictionary.json"])
def test_what_is_shown_is_what_the_command_scores(service, client, tmp_path, name):
    """From outside: the captions of the evaluation that `prescore score` makes of the same file."""
    (tmp_path / name).write_bytes(FILES[name][1])
    found = _inspect(client, FILES[name][1], name).json()
    asked = ("--dataset", "tiny@v1/test", "--metrics", "bleu_1", "--tokenizer", "none", "--json")
    run = json.loads(run_command(service, "score", tmp_path / name, *asked).stdout)
    items = client.get(f"/v1/evaluations/{run['id']}/captions").json()["items"]
    places = dict(zip([str(900 + at) for at in range(12)], IMAGES, strict=True))
    shown = {places.get(one["image"], one["image"]): one["caption"] for one in found["captions"]}
    assert shown == {one["image"]: one["caption"] for one in items} == SAID
    assert found["warnings"] == run["warnings"]


def test_captions_that_are_shown_may_be_submitted(client):
    found = _inspect(client, FILES["coco.json"][1], "coco.json").json()
    body = {"dataset": "tiny/test", "captions": found["captions"], "postgen": ["bleu_1"]}
    assert client.post("/v1/evaluations", json=body).status_code == 202


def test_missing_unknown_and_repeated_images_are_told(client):
    named = [
        *IMAGES[:3],
        "905",
        *(f"unknown {at}" for at in range(7)),
        "5.jpg",
        "0.jpg",
        "unknown 0",
    ]
    found = _found(client, [{"image": image, "caption": "a b"} for image in named])
    assert (found["images"], found["of"]) == (4, 12)  # 905 is the id of 5.jpg
    assert found["missing"] == ["3.jpg", "4.jpg", "6.jpg", "7.jpg", "8.jpg"]
    assert found["unknown"] == [f"unknown {at}" for at in range(5)]
    assert found["unknown_count"] == 7
    assert [one["image"] for one in found["captions"]] == named
    repeated = [one["image"] for one in found["warnings"] if one["code"] == "repeated_image"]
    assert repeated == ["5.jpg", "0.jpg"]


def test_warnings_are_those_of_the_submission(client):
    rows = [{"image": image, "caption": "<unk> w2"} for image in IMAGES[:5]]
    rows += [{"image": IMAGES[5], "caption": " "}, {"image": IMAGES[6], "caption": "a\rb"}]
    asked = {"dataset": "tiny/test", "captions": rows, "subset": True, "postgen": ["bleu_1"]}
    run = client.post("/v1/evaluations", json=asked).json()
    assert _found(client, rows)["warnings"] == run["warnings"]
    assert {"many_unknown_words", "empty_caption"} <= {one["code"] for one in run["warnings"]}


def test_texts_without_words_are_told(client):
    rows = [{"image": "日本 עברית", "caption": "一只狗"}]
    asked = {"dataset": "odd/test", "captions": rows, "subset": True, "postgen": ["bleu_1"]}
    run = client.post("/v1/evaluations", json=asked).json()
    assert "no_words_found" in {one["code"] for one in run["warnings"]}
    assert _found(client, rows, dataset="odd/test")["warnings"] == run["warnings"]


def test_no_image_may_fit(client):
    found = _found(client, [{"image": "x", "caption": "a"}])
    assert (found["images"], found["warnings"], found["missing"]) == (0, [], IMAGES[:5])


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a"])
@pytest.mark.parametrize(
    "content", [b"", b'{"a.jpg": ["a", "b"]}', b"[1]", b'"x"', b"\xff\xfea", b"x,y\n1,2"]
)
def test_a_file_that_cannot_be_read_is_refused_in_the_readers_words(
    client, tmp_path, name, content
):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError) as raised:
        captions.read_captions(path)
    problem = _refusal(client, content, name=name)
    assert problem["code"] == "invalid_captions"
    assert problem["detail"] == str(raised.value).replace(str(path), name)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "results.json: expected captions, found none"),
        ([*ROWS, {"image": "x" * 501, "caption": "a"}], "results.json, item 13: image: .*500"),
        ([{"image": "x", "caption": "a" * 10_001}], "results.json, item 1: caption: .*10000"),
        ([{"image": "x", "caption": "a " * 2001}], "results.json, item 1: caption: .*2000 words"),
    ],
)
def test_captions_that_no_request_may_have_are_refused(client, rows, message):
    assert re.match(message, _refusal(client, json.dumps(rows).encode())["detail"])


def test_too_many_captions_are_refused(client):
    line = b'{"image":"x","caption":"a"}\n'
    problem = _refusal(client, line * (limits.CAPTIONS + 1), name="a.jsonl")
    assert "expected at most 150,000 captions, found 150,001" in problem["detail"]


@pytest.mark.parametrize("name", [text[:200] for text in HOSTILE.values()])
def test_hostile_names_of_files_stay_text(client, name):
    answer = _inspect(client, b"[1]", name)
    assert answer.status_code == 422
    check_plain(answer.text.replace("\n", ""))
    for at in ("../../etc/passwd", "/etc/passwd", "..", "a/../b.csv"):
        assert _inspect(client, FILES["out.jsonl"][1], at).status_code == 200


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_captions_and_images_are_given_back_as_they_are(client, text):
    rows = [{"image": text[:500], "caption": text}]
    found = _found(client, rows)
    assert found["captions"] == rows
    assert found["unknown"] == [text[:500]]


def test_odd_names_of_images_are_found(client):
    rows = [{"image": "日本 עברית", "caption": REAL}]
    found = _found(client, rows, dataset="odd/test")
    assert (found["images"], found["missing"]) == (1, ["Straße/ä.jpg"])


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 1_000_000,
        b'{"a":' * 500_000,
        b"[" + b"1" * 100_000 + b"]",
        b"[" + b"[]," * 3_000_000 + b"1]",
        b"{" + b",".join(b'"%d":""' % at for at in range(200_000)) + b',"199999":""}',
        b'[{"image": "\\ud800", "caption": "a"}]',
        b"PK\x03\x04" + bytes(1000),
        b"\x80\x04\x95" + bytes(100),
        bytes(1 << 20),
        b"image,caption\n" + b'"' * 300_001,
    ],
    ids=lambda content: f"{content[:9]!r} {len(content)}",
)
def test_hostile_bytes_are_refused_or_read(client, content):
    answer = _inspect(client, content)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        check_plain(answer.json()["detail"])


def test_bounds_and_types_of_bodies(client):
    big = _inspect(client, bytes(limits.BODY_BYTES + 1))
    assert (big.status_code, big.json()["code"]) == (413, "too_large")
    for kind in ("application/json", "multipart/form-data", "text/plain", ""):
        assert _inspect(client, b"[]", headers={"content-type": kind}).status_code == 415
    assert _inspect(client, b"[]", dataset="tiny/none").status_code == 404
    assert _inspect(client, b"[]", dataset="none/test").status_code == 404
    assert client.post("/v1/inspections", content=b"", headers=OCTETS).status_code == 422


def test_nothing_is_stored(service, client):
    with service.records.reading() as connection:
        before = connection.execute(runs.select()).all()
    _inspect(client, FILES["out.csv"][1], "out.csv")
    with service.records.reading() as connection:
        assert connection.execute(runs.select()).all() == before


def test_files_are_not_read_in_the_process_of_the_service(client, monkeypatch):
    monkeypatch.delattr(captions, "read_captions_file")
    assert _inspect(client, FILES["out.csv"][1], "out.csv").status_code == 200


def test_a_key_to_read_is_enough_and_other_teams_datasets_are_not_there(serve_here, tmp_path):
    with serve_here(tmp_path / "home") as service:
        texts = {
            team: keys.create_key(service.records, team, Scope(scope))[1]
            for team, scope in (("red", "publish"), ("blue", "read"))
        }
        reading = keys.create_key(service.records, "red", Scope("read"))[1]
        asked = {"dataset": "tiny/test", "file": "out.csv"}
        with service.client() as client:
            headers = {"Authorization": f"Bearer {texts['red']}"}
            assert client.put("/v1/datasets/tiny", content=bundle(12), headers=headers).is_success
            for key, status in ((reading, 200), (texts["blue"], 404)):
                answer = client.post(
                    "/v1/inspections",
                    params=asked,
                    content=FILES["out.csv"][1],
                    headers={**OCTETS, "Authorization": f"Bearer {key}"},
                )
                assert answer.status_code == status


def test_the_client_inspects_a_file(service, tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(FILES["out.csv"][1])
    with Client(service.url) as client:
        found = client.inspect_captions(path, "tiny/test")
        assert [(one.image, one.caption) for one in found.captions] == [*SAID.items()]
        path.write_text("x")
        with pytest.raises(Refused, match=r"out\.csv, line 1: expected one column"):
            client.inspect_captions(path, "tiny/test")
