import pytest

from helpers.estimated_plans import checkpoint_plan
from service.contract.column_options import ColumnOptions
from service.contract.plan import estimates, planning
from service.contract.plan import tasks as sharding
from service.contract.plan.planning import (
    ReferenceSource,
    plan_brought_columns,
    plan_captions,
    plan_conversion,
)
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.tasks import Blob, size_decoding_block

PEOPLE = ReferenceSource("sha256:d", "test")


def _plan(images=1000, families=("bleu", "cider_d"), precision="fp32", prompt=None, **more):
    options = ColumnOptions(precision=precision, prompt=prompt)
    return checkpoint_plan(PostgenRequest(families, "ptb"), images, options=options, **more)


def _keys(plan):
    return {name: task.key for name, task in plan.named.items()}


def test_another_precision_is_other_columns_and_all_that_is_made_of_them():
    """The order of images is; captions are decoded in it. A prefix has no precision."""
    usual, half = _keys(_plan()), _keys(_plan(precision="bf16"))
    assert list(usual) == list(half)
    alike = {name for name in usual if usual[name] == half[name]}
    assert alike == {"prefix", "references"}
    assert _keys(_plan(precision="fp32")) == usual
    parts = _plan(precision="bf16", images=3000).named["columns"].parts
    assert {part.parameters["precision"] for part in parts} == {"bf16"}


def test_another_prompt_is_other_ranks_columns_and_captions():
    """Of few images too, which are decoded in the split's order."""
    plans = [_plan(images=200, prompt=prompt).named for prompt in (None, "a", "b")]
    for name in ("prefix", "columns", "pregen", "captions", "cider_d"):
        assert len({named[name].key for named in plans}) == 3, name
    assert len({named["references"].key for named in plans}) == 1
    for name in ("prefix", "columns", "captions"):
        assert [named[name].parameters.get("prompt") for named in plans] == [None, "a", "b"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_more_of_the_tokens_is_one_task_more_and_changes_none(precision):
    usual = _keys(_plan(precision=precision))
    plan = _plan(precision=precision, tokens={"top": 5, "entropy": True})
    detailed = plan.named["tokens"]
    assert (detailed.kind, detailed.parameters["top"]) == ("columns", 5)
    assert detailed.parameters.get("precision", "fp32") == precision
    assert {**usual, "tokens": detailed.key} == _keys(plan)


def test_tokens_as_usual_are_those_of_the_columns_where_there_are_any():
    assert "tokens" not in _plan(tokens={}).named
    (alone,) = _plan(tokens={}, pregen=False, families=[]).named.values()
    assert alone == _plan().named["columns"]


@pytest.mark.parametrize(
    ("beam", "max_words", "block", "part"),
    [
        (1, 50, 128, 256),
        (3, 50, 128, 256),
        (5, 50, 76, 152),
        (3, 200, 32, 64),
        (20, 1000, 1, 1),
        (100, 1000, 1, 1),
    ],
)
def test_a_longer_search_takes_fewer_images_at_once(beam, max_words, block, part):
    """So that its shards are short too."""
    assert size_decoding_block(beam, max_words) == block
    decoding = {"beam": beam, "max_words": max_words}
    parts = _plan(images=400, decoding=decoding, pregen=False).named["captions"].parts
    spans = [part.parameters["images"] for part in parts]
    assert [start for start, _ in spans] == list(range(0, 400, part))
    assert [stop for _, stop in spans][:-1] == [start for start, _ in spans][1:]
    assert spans[-1][1] == 400


def test_a_model_that_searches_in_its_own_way_has_blocks_of_its_own():
    """One that has to be verified first, and does not, has those of all others."""
    decoding = {"beam": 40, "max_words": 100}  # so long that a part is about a block
    more = {"verified": plan_conversion("sha256:m"), "decoding": decoding, "pregen": False}
    own, usual = (_plan(images=200, **more, searches=own) for own in (True, False))
    spans = [each.parameters["images"] for each in own.named["captions"].parts]
    assert {start % planning.OWN_BLOCK for start, _ in spans} == {0}
    there = [
        each.parameters
        for each in _plan(images=200, decoding=decoding, pregen=False).named["captions"].parts
    ]
    assert [each.parameters for each in usual.named["captions"].parts] == there
    assert len(there) > len(spans)


def test_a_verification_by_a_plug_in_has_its_version_in_all_keys():
    keys = []
    for version in ("1.0", "1.1"):
        plugin = {"name": "a", "package": "b", "version": version}
        named = _plan(images=2, verified=plan_conversion("sha256:m", plugin)).named
        keys.append({name: task.key for name, task in named.items()})
    shared = {name for name in keys[0] if keys[0][name] == keys[1][name]}
    assert not shared & {"checkpoint", "prefix", "columns", "pregen", "captions", "bleu"}
    assert "references" in shared
    assert plan_conversion("sha256:m").parameters == {}


def test_many_images_are_decoded_in_an_order_that_pregen_scores_give():
    large, small = _plan(images=257).named, _plan(images=256).named
    assert list(large)[3:5] == ["order", "captions"]
    assert large["order"].inputs == {"columns": large["columns"]}
    assert all(part.inputs["order"] is large["order"] for part in large["captions"].parts)
    assert "order" not in small["captions"].inputs
    assert "order" not in _plan(pregen=False).named["captions"].inputs


def test_past_systems_are_inputs_of_the_order_and_of_nothing_before_it():
    past = {"cider_d": ["sha256:1", "sha256:0"], "bleu": ["sha256:2"]}
    usual, drawn = _plan(), _plan(order_history=past)
    inputs = drawn.named["order"].inputs
    digests = {name: str(value) for name, value in inputs.items() if name != "columns"}
    assert list(digests.values()) == ["sha256:1", "sha256:0", "sha256:2"]
    assert estimates.read_history(digests) == past
    alike = {name for name in _keys(usual) if _keys(usual)[name] == _keys(drawn)[name]}
    assert alike == {"prefix", "columns", "pregen", "references"}
    assert _keys(_plan(order_history={})) == _keys(usual)


@pytest.mark.parametrize(("images", "size"), [(300, 128), (1000, 128), (2047, 128), (2048, 256)])
def test_what_is_decoded_in_an_order_is_looked_at_eight_times_if_blocks_allow(images, size):
    parts = _plan(images=images).named["captions"].parts
    spans = [part.parameters["images"] for part in parts]
    assert spans == [[at, min(at + size, images)] for at in range(0, images, size)]
    assert size % size_decoding_block(3, 50) == 0


def test_a_huge_split_has_no_more_shards_than_the_record_likes():
    decoding = {"beam": 100, "max_words": 1000}
    parts = _plan(images=100_000, decoding=decoding).named["captions"].parts
    assert len(parts) == sharding.MAX_PARTS
    assert parts[-1].parameters["images"][1] == 100_000


def test_families_of_two_encoders_have_embedded_references_each():
    own = {"bertscore": {"encoder": "b"}, "accord_large": {"encoder": "a", "layer": None}}
    families = PostgenRequest([*own], "ptb", own=own)
    plan = plan_captions("sha256:o", "sha256:d", "test", 900, families).named
    embedded = {name: plan[name].inputs["embedded_references"] for name in own}
    assert embedded["bertscore"] is plan["embedded_references"]
    assert embedded["accord_large"] is plan["embedded_references:accord_large"]
    assert [each.parameters["encoder"] for each in embedded.values()] == ["b", "a"]


def test_a_forecast_of_brought_columns_stands_right_behind_the_scores_that_it_reads():
    plan = plan_brought_columns("sha256:b", None, PEOPLE, pregen=True, history="sha256:h").named
    assert list(plan) == ["columns", "pregen", "forecast"]
    assert plan["forecast"].inputs == {"pregen": plan["pregen"], "history": Blob("sha256:h")}


def test_bytes_are_counted_of_the_references_whatever_features_the_dataset_has():
    wanted = PostgenRequest([], "ptb")
    plans = [
        checkpoint_plan(wanted, references="sha256:r", token_metrics=["bits_per_byte"]),
        plan_brought_columns(
            *("sha256:b", None, ReferenceSource("sha256:r", "test")),
            pregen=True,
            token_metrics=["bits_per_byte"],
        ),
    ]
    for plan in plans:
        found = plan.named["bits_per_byte"]
        expected = {"columns": plan.named["columns"], "dataset": Blob("sha256:r")}
        assert (found.inputs, found.parameters) == (expected, {"split": "test"})


def test_brought_columns_are_scored_before_captions_and_need_no_model():
    captions = plan_captions("sha256:c", "sha256:d", "test", 3, PostgenRequest(["cider_d"], "ptb"))
    plan = plan_brought_columns("sha256:b", captions, PEOPLE, pregen=True)
    assert list(plan.named) == ["columns", "pregen", *captions.named]
    columns = plan.named["columns"]
    assert (columns.kind, columns.inputs, columns.parameters) == (
        "brought",
        {"columns": Blob("sha256:b")},
        {},
    )
    assert plan.named["pregen"].inputs == {"columns": columns}
    assert plan.named["cider_d"].key == captions.named["cider_d"].key
    assert list(plan_brought_columns("sha256:b", None, PEOPLE, pregen=False).named) == ["columns"]
