"""Judgements as lines of a file, and as a request has them."""

import pytest

from prescore.client import requests
from prescore.errors import InvalidArgument
from prescore.files import captions


def test_lines_become_rated_captions_and_pairs_without_what_the_service_does_not_know(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text(
        '{"image": "1.jpg", "candidate": "a", "references": ["b"], "rating": 2, "note": "x"}\n\n'
        '{"references": ["b"], "a": "c", "b": "d", "preferred": "b", "category": "HM"}\n'
    )
    assert requests.split_judgements(captions.read_judgements(path)) == {
        "rated": [{"image": "1.jpg", "candidate": "a", "references": ["b"], "ratings": [2]}],
        "pairs": [{"references": ["b"], "a": "c", "b": "d", "preferred": "b"}],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a line for each judgement, found none"),
        ("[1]\n", "line 1: expected an object"),
        ('{"a": 1}\n{"a": \n', "line 2"),
        ('{"a": 1, "a": 2}\n', "expected each name once"),
    ],
)
def test_a_file_of_something_else_is_refused_with_its_line(tmp_path, text, said):
    (tmp_path / "j.jsonl").write_text(text)
    with pytest.raises(InvalidArgument, match=r"j\.jsonl") as caught:
        captions.read_judgements(tmp_path / "j.jsonl")
    assert said in str(caught.value)
