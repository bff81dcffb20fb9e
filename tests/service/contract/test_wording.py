"""What is wrong with a field is said in plain English, with what was found."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from service.contract import wording
from service.contract.formats import outputs
from service.contract.plan import estimates
from workers.offline import sources


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    beam: int


def _told(type_, value):
    with pytest.raises(ValidationError) as error:
        TypeAdapter(type_, config=None).validate_python(value, strict=True)
    (first,) = error.value.errors()
    return wording.describe_field_error(first, Inner.model_fields)


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        (Inner, {}, "expected a value, found none"),
        (Inner, {"beam": 1, "beams": 2}, "unknown field; did you mean beam?"),
        (Inner, {"beam": 1, "x": 2}, "unknown field; expected one of beam"),
        (Inner, [1], "expected an object, found a list"),
        (str, 5, "expected a text, found 5"),
        (int, "5", "expected a whole number, found '5'"),
        (int, "\x1b[2J\nok", r"expected a whole number, found '\x1b[2J\nok'"),
        (int, True, "expected a whole number, found true"),
        (float, None, "expected a number, found null"),
        (bool, 1, "expected true or false, found 1"),
        (list[int], {"a": 1}, "expected a list, found an object"),
        (dict[str, int], "a", "expected an object, found 'a'"),
        (Literal["ptb", "none"], "pbt", "expected 'ptb' or 'none', found 'pbt'; did you mean ptb?"),
        (Literal["ptb", "none"], 1, "expected 'ptb' or 'none', found 1"),
        (Annotated[int, Field(ge=1)], 0, "expected at least 1, found 0"),
        (Annotated[int, Field(le=9)], 10, "expected at most 9, found 10"),
        (Annotated[float, Field(lt=1)], 1.0, "expected less than 1.0, found 1.0"),
        (Annotated[float, Field(gt=1)], 1.0, "expected more than 1.0, found 1.0"),
        (Annotated[str, Field(min_length=1)], "", "expected at least 1 character, found 0"),
        (Annotated[str, Field(max_length=2)], "abc", "expected at most 2 characters, found 3"),
        (Annotated[list[int], Field(min_length=1)], [], "expected at least 1 item, found 0"),
        (Annotated[list[int], Field(max_length=2)], [1] * 3, "expected at most 2 items, found 3"),
        (Annotated[str, Field(pattern="^a$")], "b", "expected a text like ^a$, found 'b'"),
    ],
)
def test_it_says_what_was_expected_and_what_was_found(type_, value, told):
    assert _told(type_, value) == told


def test_of_a_large_value_only_the_beginning_is_shown():
    assert _told(int, "x" * 10_000_000) == f"expected a whole number, found '{'x' * 60}'"
    assert len(_told(int, {str(at): at for at in range(100_000)})) < 60


def test_a_name_in_capitals_is_near():
    assert wording.suggest_names("METEOR", ["bleu_4", "meteor"]) == "; did you mean meteor?"
    assert wording.suggest_names("colour", ["Color"]) == "; did you mean Color?"


def test_a_label_is_near_by_its_value_and_where_its_name_is_unknown_by_its_name():
    known = ["branch=main", "branch=next", "author=ann"]
    asked = {
        "branch=mian": "; did you mean branch=main?",
        "branch=release": "",
        "brnach=main": "; did you mean branch=main?",
        "brnach=release": "; did you mean branch=main or branch=next?",
        "seed=1": "",
    }
    assert {one: wording.suggest_labels(one, known) for one in asked} == asked


def test_no_near_name_is_looked_for_beyond_a_bound():
    """A search of all would take minutes."""
    known = (f"{at:09}" for at in range(10**9))
    assert wording.suggest_names("9" * 10**6, known) == ""
    assert next(known) == f"{wording.MOST_COMPARED:09}"


def test_messages_of_one_have_no_plural(tmp_path):
    assert estimates.explain_too_few(1, 1).startswith(
        "this split has 1 finished evaluation of other checkpoints with "
    )
    assert outputs.warn_of_flat_scores("wmd", 1200)["detail"].startswith(
        "all 1,200 captions have the same wmd, "
    )
    missing = outputs.arrange_captions([], {"a": 0}, [["b"]], "mine/test", subset=False).problems
    assert missing[0][1].startswith("1 of 1 image has no caption, the first is 'a'")
    source = sources.DatasetSource("shapes/", tmp_path, "test", "sha256:0")
    assert str(source) == "shapes/test"


@pytest.mark.parametrize(
    ("count", "most", "said"),
    [
        (1, 1, "You have 1 unfinished run; your limit is 1. Wait until it ends, or cancel it."),
        (3, 3, "You have 3 unfinished runs; your limit is 3. Wait until one ends, or cancel one."),
        (4, 3, "You have 4 unfinished runs; your limit is 3. Wait until 2 end, or cancel 2."),
    ],
)
def test_too_many_runs_are_told_in_the_right_number(count, most, said):
    assert wording.describe_too_many_runs("You have", "your", count, most) == said
