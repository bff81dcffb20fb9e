"""The lines of a refusal: each place once."""

import pytest

from prescore.cli import request_errors
from prescore.errors import Refused
from prescore.models import Problem

OTHERS = {  # of which the sentence says nothing
    "/gates/0": "expected a metric: found 0",
    "/onfig.json": "config.json: expected an object",
    "/3": "expected a caption",
    "/dataset": "expected a dataset with pictures",
}


def _told(*errors, detail=None):
    said = errors[0][1] if detail is None else detail
    places = [{"pointer": pointer, "detail": text} for pointer, text in errors]
    problem = {"title": "Refused", "status": 422, "detail": said, "errors": places}
    return str(Refused(Problem.model_validate(problem)))


@pytest.mark.parametrize(
    ("pointer", "detail"),
    [
        ("/config.json/model_type", "config.json: expected a model_type of blip, found 'zzz'"),
        ("/config.json/layers/0", "config.json/layers/0: expected a number"),
        ("/__metadata__/config/size", "config/size: expected a number"),
        ("/model.safetensors", "model.safetensors, row 2: expected a number"),
        ("/a~1b.json", "a/b.json: expected an object"),
        ("/3/references", "line 3, references: expected a text"),
        *OTHERS.items(),
    ],
)
def test_a_sentence_that_begins_with_its_place_has_it_once_and_any_other_after_it(pointer, detail):
    told = f"{pointer}: {detail}" if pointer in OTHERS else detail
    assert _told((pointer, detail)) == f"422 Refused: {told}"
    both = _told((pointer, detail), ("/logp", "expected finite"), detail="2 places are wrong")
    assert both.splitlines()[1:] == [f"  {told}", "  /logp: expected finite"]


def test_a_field_that_the_sentence_names_is_not_told_before_it():
    errors = [{"pointer": "/dataset", "detail": "no dataset 'zebra': add it"}]
    problem = {"title": "Not Found", "status": 404, "detail": errors[0]["detail"], "errors": errors}
    refused = Refused(Problem.model_validate(problem))
    assert (
        refused.format_lines(request_errors.locate_field)
        == "404 Not Found: no dataset 'zebra': add it"
    )
