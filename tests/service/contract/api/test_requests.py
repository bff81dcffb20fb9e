"""What requests mean when they come as JSON, and what they are known by."""

import importlib
import pkgutil

import pytest
from pydantic import TypeAdapter, ValidationError

from service.contract import api, limits
from service.contract.api.analyses import ProbesRequest
from service.contract.api.evaluations import DecodingInput, EvaluationRequest
from service.contract.api.request_parts import CaptionInput, StrictModel
from service.contract.column_options import ColumnOptions
from service.contract.results import COMPUTED_BY, StoredEvaluation
from workers.inference import decoding, scoring

for module in pkgutil.iter_modules(api.__path__):
    importlib.import_module(f"{api.__name__}.{module.name}")

# Types that JSON has no values of: a strict model, which is given parsed JSON, would refuse all.
_FOREIGN = {"tuple", "set", "frozenset", "bytes", "date", "datetime", "time", "timedelta", "enum"}
_FOREIGN |= {"decimal", "uuid", "url"}
DIGEST = f"sha256:{'0' * 64}"


def _models(root=StrictModel):
    for model in root.__subclasses__():
        yield model
        yield from _models(model)


def _schemas(value):
    """A core schema and all that are in it."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value
        for name, each in value.items():
            if name not in ("serialization", "metadata"):
                yield from _schemas(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _schemas(each)


@pytest.mark.parametrize("model", [*_models()], ids=lambda model: model.__name__)
def test_no_request_asks_for_what_json_cannot_say(model):
    """A tuple, for one: JSON has lists, and strict models take none for a tuple."""
    found = _schemas(TypeAdapter(model).core_schema)
    refused = [
        each for each in found if each["type"] in _FOREIGN and each.get("strict") is not False
    ]
    assert refused == []


def _evaluation(**asked):
    return EvaluationRequest(checkpoint=DIGEST, dataset="d/test", **asked)


SAID = [{"image": "a.jpg", "caption": "a dog"}]


@pytest.mark.parametrize(
    ("sources", "is_right"),
    [
        ((), False),
        (("checkpoint", "captions"), False),
        (("checkpoint", "columns"), False),
        (("checkpoint", "columns", "captions"), False),
        (("columns",), True),
        (("columns", "captions"), True),
    ],
)
def test_a_wrong_number_of_sources_is_told_of_all_three(sources, is_right):
    given = {"checkpoint": DIGEST, "columns": DIGEST, "captions": SAID}
    asked = {"dataset": "tiny/test", **{name: given[name] for name in sources}}
    if is_right:
        EvaluationRequest.model_validate(asked)
        return
    with pytest.raises(ValidationError, match="one of `checkpoint`, `captions` and `columns`"):
        EvaluationRequest.model_validate(asked)


def test_options_as_usual_are_those_of_a_request_without_them():
    """In what is kept of it and hashed, too: so its tasks and its Idempotency-Key are found again
    that were there before these options.
    """
    search = {"beam": 3, "length_power": 0}
    usual = {"precision": "fp32", "prompt": None, "tokens": None}
    found = _evaluation(**usual, decoding=search).model_dump()
    assert found == _evaluation().model_dump()
    assert set(found["decoding"]) == {"beam", "min_words", "max_words", "unk"}
    assert not found.keys() & usual.keys()
    assert _evaluation(tokens={"top": 1, "entropy": False}).tokens.model_dump() == {}
    asked = _evaluation(precision="bf16", tokens={"top": 2}, decoding={"length_power": 1})
    kept = asked.model_dump()
    assert (kept["precision"], kept["tokens"]) == ("bf16", {"top": 2})
    assert kept["decoding"]["length_power"] == 1


def test_options_as_usual_are_those_of_the_engine():
    assert DecodingInput().length_power == decoding.DecodingOptions().length_power
    assert ColumnOptions.model_validate(_evaluation()) == ColumnOptions()
    assert ColumnOptions().precision == scoring.ScoringOptions().precision
    tokens, usual = _evaluation(tokens={}).tokens, scoring.ScoringOptions()
    assert (tokens.top, tokens.entropy) == (usual.top, usual.entropy)


SEARCH = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({"decoding": SEARCH}, True),  # as it was kept before there was another option
        ({"decoding": {**SEARCH, "length_power": 0.5}}, False),
        ({"precision": "bf16"}, False),
        ({"prompt": "caption en"}, False),
        ({"tokens": {"top": 5}}, True),
    ],
)
def test_scores_compare_where_they_were_computed_alike(other, alike):
    kept = _evaluation().model_dump()
    ours, theirs = (StoredEvaluation.model_validate(each) for each in (kept, {**kept, **other}))
    assert ours.is_computed_as(theirs) is alike


@pytest.mark.parametrize("name", ["391895", 391895, 391895.0])
def test_a_caption_names_its_image_as_cocos_results_do(name):
    """The same request, whichever name it has, so that its hash is the same."""
    found = CaptionInput.model_validate({"image_id": name, "caption": "a dog"})
    assert found.model_dump() == {"image": "391895", "caption": "a dog"}


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"image": "1", "image_id": 1},
        {"image": 1},
        {"image_id": None},
        {"image_id": True},
        {"image_id": 1.5},
        {"image_id": "1" * (limits.IMAGE + 1)},
    ],
)
def test_a_caption_names_one_image_once(named):
    with pytest.raises(ValidationError):
        CaptionInput.model_validate({**named, "caption": "a dog"})


@pytest.mark.parametrize("model", [EvaluationRequest, ProbesRequest])
def test_captions_are_counted_before_one_is_judged(model):
    """To judge as many as may be takes a second, and the first of these is none."""
    asked = {"dataset": "tiny/test", "captions": [None] * (limits.CAPTIONS + 1)}
    with pytest.raises(ValidationError) as refused:
        model.model_validate(asked)
    found = [(each["loc"], each["type"], each["ctx"]) for each in refused.value.errors()]
    counted = {"field_type": "List", "max_length": 150_000, "actual_length": 150_001}
    assert (("captions",), "too_long", counted) in found


# Fields that choose what is scored, which scores are shown, or when a run ends.
_OTHER_FIELDS = {
    *(
        "checkpoint",
        "base",
        "captions",
        "columns",
        "dataset",
        "subset",
        "tokens",
        "pregen",
        "postgen",
    ),
    *("gates", "baseline", "trust", "if_no_baseline", "until", "labels", "deadline"),
}


def test_each_field_decides_how_scores_are_computed_or_is_known_not_to():
    """Else scores that are computed in different ways would share a forecast's history."""
    assert set(EvaluationRequest.model_fields) == {*COMPUTED_BY, *_OTHER_FIELDS}
    assert set(COMPUTED_BY) <= set(StoredEvaluation.model_fields)
