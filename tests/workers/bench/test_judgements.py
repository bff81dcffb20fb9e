import json
from dataclasses import replace

import pytest

from service.contract.errors import RequestRefused
from workers.bench import judgements
from workers.bench.judgements import JudgedPair, RatedCaption

RATED = {"candidate": "a cat", "references": ["the cat", "a cat sits"], "ratings": [3, 4, 4]}
PAIR = {"references": ["the cat"], "a": "a cat", "b": "a dog", "preferred": "a", "category": "HM"}


def _file(tmp_path, *values):
    path = tmp_path / "judgements.jsonl"
    texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def test_both_kinds_may_stand_in_one_file_whose_lines_keep_their_numbers_and_who_wrote_them(
    tmp_path,
):
    """A name that is no text is none: files of others hold numbers there."""
    single = {"candidate": "", "references": ["the cat"], "rating": 3.5, "image": "7.jpg"}
    others = {"system": 3, "image": 7}
    lines = [PAIR | {"image": "7.jpg"}, single | {"system": "m1"}, RATED | others]
    found = judgements.read_judgements(_file(tmp_path, *lines, PAIR))
    assert found.rated == [
        RatedCaption("", ("the cat",), (3.5,), "7.jpg", "m1"),
        RatedCaption("a cat", ("the cat", "a cat sits"), (3.0, 4.0, 4.0)),
    ]
    pair = JudgedPair(("the cat",), "a cat", "a dog", "a", "HM")
    assert found.pairs == [replace(pair, image="7.jpg"), pair]
    assert (found.rated_lines, found.pair_lines) == ([2, 3], [1, 4])


def test_rated_captions_are_read_with_their_images(tmp_path):
    named = RATED | {"image": "7.jpg"}
    (rated,) = judgements.read_image_ratings(_file(tmp_path, named))
    assert rated == RatedCaption("a cat", tuple(RATED["references"]), (3, 4, 4), "7.jpg")
    for other, said in (
        (PAIR, "line 2: expected a rated caption, found a pair"),
        (RATED, "line 2, image: expected the name of the image as a text, found none"),
        (RATED | {"image": 7}, "line 2, image: expected the name of the image"),
        (RATED | {"image": ""}, "line 2, image: expected the name of the image"),
    ):
        with pytest.raises(RequestRefused, match=said):
            judgements.read_image_ratings(_file(tmp_path, named, other))


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "windows.jsonl"
    path.write_text(f"{json.dumps(PAIR)}\r\n", "utf-8-sig")
    assert judgements.read_judgements(path).pairs == [
        JudgedPair(("the cat",), "a cat", "a dog", "a", "HM")
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n \n\r\n", "has empty lines only: expected a line for each judgement"),
        ("\ufeff\n", "has empty lines only: expected a line for each judgement"),
        ("\n" * 200_000, "has empty lines only: expected a line for each judgement"),
        (json.dumps([RATED, PAIR]), "line 1: expected a JSON object, found the beginning of an"),
        (json.dumps([RATED, PAIR], indent=2), "write each of its objects on a line of its own"),
        ("\ufeff[", "write each of its objects on a line of its own"),
    ],
)
def test_a_file_of_another_form_is_refused_with_what_to_do(tmp_path, text, said):
    path = tmp_path / "other"
    path.write_text(text, "utf-8")
    with pytest.raises(RequestRefused) as refused:
        judgements.read_judgements(path)
    assert said in refused.value.detail


def test_pairs_that_are_written_are_read_again(tmp_path):
    pairs = [
        JudgedPair(("é\u2028b",), "x", "y", "b", "replace-person"),
        JudgedPair(("c", "c"), "", "z", "a"),
    ]
    judgements.write_pairs(tmp_path / "pairs.jsonl", pairs, seed=7)
    assert judgements.read_judgements(tmp_path / "pairs.jsonl").pairs == pairs
    first = (tmp_path / "pairs.jsonl").read_text("utf-8").split("\n")[0]
    assert json.loads(first)["seed"] == 7


def _but(line, *absent, **changes):
    return {name: value for name, value in (line | changes).items() if name not in absent}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: expected JSON"),
        ("", "line 2: expected JSON"),
        ("[1]", "line 2: expected a JSON object, found [1]"),
        ('{"candidate": "a", "candidate": "b"}', "line 2: expected every key once"),
        ({"references": ["x"]}, "line 2: expected candidate and rating or ratings"),
        (RATED | PAIR, "line 2: expected candidate and rating or ratings"),
        (_but(RATED, "references"), "line 2, references: expected a list of at least one"),
        (_but(RATED, references=[]), "line 2, references: expected a list of at least one"),
        (_but(RATED, references=["x", 3]), "line 2, references/1: expected a text"),
        (_but(RATED, "candidate"), "line 2, candidate: expected a text"),
        (_but(RATED, candidate="a" * 10_001), "line 2, candidate: expected a text of at most"),
        (
            _but(RATED, "ratings"),
            "line 2, rating: expected a number, or a list of them in `ratings`",
        ),
        (_but(RATED, rating=3), "line 2, ratings: expected either rating or ratings, not both"),
        (_but(RATED, "ratings", rating="3"), "line 2, rating: expected a number, found '3'"),
        (_but(RATED, "ratings", rating=True), "line 2, rating: expected a number, found True"),
        (_but(RATED, ratings=[]), "line 2, ratings: expected a list of at least one number"),
        (_but(RATED, ratings=[1, None]), "line 2, ratings/1: expected a number, found None"),
        ('{"candidate": "a", "references": ["b"], "rating": NaN}', "line 2: NaN is not JSON"),
        (_but(PAIR, "b"), "line 2, b: expected a text"),
        (_but(PAIR, preferred="tie"), 'line 2, preferred: expected "a" or "b" (lines where people'),
        (_but(PAIR, category="worst"), "line 2, category: expected a name other than all"),
        (_but(PAIR, category=""), "line 2, category: expected a name"),
        (_but(PAIR, category="x\ny"), "line 2, category: expected a name"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(tmp_path, line, said):
    path = _file(tmp_path, RATED, line)
    with pytest.raises(RequestRefused) as refused:
        judgements.read_judgements(path)
    assert refused.value.detail.startswith(f"{path}, {said}")
    if said.startswith("line 2, references/1"):
        assert refused.value.pointer == "/2/references/1"


def test_a_file_that_is_empty_absent_or_no_text_is_refused(tmp_path):
    with pytest.raises(RequestRefused, match="is empty: expected a line for each judgement"):
        judgements.read_judgements(_file(tmp_path))
    with pytest.raises(RequestRefused, match="found nothing at"):
        judgements.read_judgements(tmp_path / "absent.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(RequestRefused, match="line 1: not UTF-8"):
        judgements.read_judgements(tmp_path / "binary")
    (tmp_path / "long").write_bytes(b"x" * 1_000_001)
    with pytest.raises(RequestRefused, match="line 1: longer than 1000000 bytes"):
        judgements.read_judgements(tmp_path / "long")
