import pytest

from service.contract.column_options import ColumnOptions
from service.contract.plan import planning
from service.contract.plan import tasks as sharding
from service.contract.plan.planning import (
    CheckpointPlanner,
    TrainingCaptioner,
    plan_brought_columns,
    plan_captions,
    plan_conversion,
)
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.tasks import BLOCK_IMAGES, Blob, size_decoding_block

DECODING = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}


def _plan(images=1000, **more):
    given = {"families": ["bleu", "cider_d"], "tokenizer": "ptb"}
    given |= {name: more.pop(name) for name in list(more) if name in given}
    options = ColumnOptions(precision=more.pop("precision", "fp32"))
    other = {"pregen": True, "decoding": DECODING, "options": options} | more
    wanted = PostgenRequest(**given)
    return CheckpointPlanner("sha256:c", "sha256:d", "test", images, wanted=wanted, **other).plan()


def _scored(*families, images=9, **how):
    how = {"tokenizer": "ptb"} | how
    return plan_captions("sha256:o", "sha256:d", "test", images, PostgenRequest(families, **how))


def test_a_checkpoint_gets_prefix_columns_pregen_captions_and_a_task_a_family():
    assert list(_plan(images=planning.CAPTIONS_IMAGES).named) == [
        *("prefix", "columns", "pregen", "captions", "references", "bleu", "cider_d")
    ]


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


def test_without_postgen_metrics_nothing_is_decoded():
    assert list(_plan(families=[]).named) == ["prefix", "columns", "pregen"]


def test_without_pregen_scores_nothing_is_teacher_forced():
    assert list(_plan(pregen=False).named) == ["captions", "references", "bleu", "cider_d"]


def test_captions_that_were_sent_need_no_model():
    plan = _scored("meteor", tokenizer="none")
    assert [task.kind for task in plan.everything()] == ["references", "meteor"]


def test_document_frequencies_of_a_subset_are_for_the_metrics_that_have_them():
    families = ["bleu", "cider_d", "cider"]
    usual, asked = (_scored(*families, idf=idf) for idf in ("dataset", "subset"))
    changed = [name for name in families if usual.named[name].key != asked.named[name].key]
    assert changed == ["cider_d", "cider"]
    assert asked.named["cider"].parameters == {"idf": "subset"}


def test_a_learned_metrics_key_follows_the_model_that_it_names():
    models = {"nneval@0": "sha256:0", "nneval@1": "sha256:1"}
    plan = _scored("nneval", *models, models=models)
    tasks = [plan.named[name] for name in ("nneval", *models)]
    assert {task.kind for task in tasks} == {"nneval"}
    assert len({task.key for task in tasks}) == 3
    assert [str(task.inputs["model"]) for task in tasks[1:]] == ["sha256:0", "sha256:1"]
    again = _scored("nneval@1", models={"nneval@1": "sha256:2"}).named["nneval@1"]
    assert again.key != plan.named["nneval@1"].key


def test_a_trainings_key_follows_all_that_it_is_given():
    """Another captioner's captions, its name, what it was trained on, ratings, the recipe."""

    def key(name="c", said="a", trained_on=None, ratings=None, **recipe):
        captioners = [
            TrainingCaptioner(name, Blob(said), trained_on),
            TrainingCaptioner("d", Blob("b")),
        ]
        plan = planning.plan_learned("sha256:d", "test", captioners, ratings, recipe)
        return plan.named["model"].key

    told = Blob("t"), "train"
    others = [
        *(key(name="e"), key(said="c"), key(trained_on=told), key(ratings=Blob("r"))),
        *(key(seed=1), key(trained_on=(Blob("t"), "val"))),
    ]
    assert len({key(), *others}) == 7
    assert key(trained_on=told) == key(trained_on=told)


def test_a_large_split_is_sharded_in_whole_blocks():
    size = planning.COLUMNS_IMAGES
    assert size % BLOCK_IMAGES == 0
    columns = _plan(images=2 * size + 5).named["columns"]
    spans = [part.parameters["images"] for part in columns.parts]
    assert spans == [
        [0, size],
        [size, 2 * size],
        [2 * size, 2 * size + 5],
    ]
    assert columns.key == _plan(images=9).named["columns"].key


def test_everything_comes_after_what_it_needs_and_once():
    found = _plan(images=5000).everything()
    keys = [task.key for task in found]
    assert len(set(keys)) == len(keys)
    for place, task in enumerate(found):
        assert all(need.key in keys[:place] for need in task.needs)


def test_another_tokenizer_changes_what_depends_on_it_and_nothing_else():
    ptb, plain = _plan().named, _plan(tokenizer="none").named
    changed = {name for name in ptb if ptb[name].key != plain[name].key}
    assert changed == {"references", "bleu", "cider_d"}


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


def test_a_model_that_is_verified_first_is_searched_as_others_unless_it_searches_itself():
    asked = {"images": 40, "decoding": {"beam": 20, "max_words": 1000}, "pregen": False}
    plain = _plan(**asked).named["captions"]
    verified = {"verified": planning.plan_conversion("sha256:c"), **asked}
    found = _plan(**verified).named["captions"]
    assert len(found.parts) == len(plain.parts) == 40
    assert len(_plan(**verified, searches=True).named["captions"].parts) < 40


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


def _parsed(images, *families, **how):
    return _scored(*families, images=images, **how).named


def test_spice_needs_the_tuples_of_captions_and_references():
    plan = _parsed(9, "bleu", "spice")
    assert list(plan) == ["references", "bleu", "reference_tuples", "tuples", "spice"]
    assert set(plan["spice"].inputs) == {"captions", "references", "reference_tuples", "tuples"}


def test_spider_is_computed_from_spice_and_cider_d():
    plan = _parsed(9, "spider")
    assert plan["spider"].inputs["cider_d"] is plan["cider_d"]
    assert plan["spider"].inputs["spice"] is plan["spice"]
    assert plan["cider_d"].key == _parsed(9, "cider_d")["cider_d"].key


def test_parsing_is_sharded_by_images_and_the_references_are_parsed_once():
    plan = _parsed(1000, "spice")
    spans = [part.parameters["images"] for part in plan["reference_tuples"].parts]
    assert spans[:2] == [[0, 75], [75, 150]]
    assert spans[-1] == [975, 1000]
    assert len(plan["tuples"].parts) == 2
    decoded = _plan(families=["spice"]).named
    assert decoded["reference_tuples"].key == plan["reference_tuples"].key
    assert decoded["tuples"].key != plan["tuples"].key


def test_another_tokenizer_means_other_tuples():
    ptb, plain = _parsed(9, "spice"), _parsed(9, "spice", tokenizer="none")
    assert all(ptb[name].key != plain[name].key for name in ptb)


def test_what_a_metric_is_computed_with_is_part_of_its_key_alone():
    one, other = (_parsed(9, "wmd", "bleu", own={"wmd": {"vectors": v}}) for v in ("a", "b"))
    assert one["wmd"].key != other["wmd"].key
    assert one["bleu"].key == other["bleu"].key


def test_references_are_embedded_once_whatever_is_asked_of_their_embeddings():
    plain, weighted = (
        _parsed(900, "bertscore", own={"bertscore": {"encoder": "a", "layer": 2, "idf": idf}})
        for idf in (False, True)
    )
    assert list(plain) == ["embedded_references", "bertscore"]
    assert plain["embedded_references"].key == weighted["embedded_references"].key
    assert plain["bertscore"].key != weighted["bertscore"].key
    assert len(plain["embedded_references"].parts) == 5


def test_families_of_one_encoder_share_embedded_references_and_those_of_two_do_not():
    own = {name: {"encoder": "a", "layer": None} for name in ("bertscore", "accord_large")}
    plan = _parsed(900, "bertscore", "accord_large", own=own)
    assert list(plan) == ["references", "embedded_references", "bertscore", "accord_large"]
    embedded = plan["embedded_references"]
    assert plan["accord_large"].inputs["embedded_references"] is embedded
    apart = _parsed(900, "bertscore", "accord_large", own={**own, "bertscore": {"encoder": "b"}})
    other = apart["embedded_references:accord_large"]
    assert other.key == embedded.key
    assert apart["accord_large"].inputs["embedded_references"] is other
    assert apart["accord_large"].key == plan["accord_large"].key
    assert apart["bertscore"].inputs["embedded_references"] is apart["embedded_references"]
    assert apart["embedded_references"].parameters["encoder"] == "b"


def test_references_are_embedded_as_sentences_beside_those_embedded_by_tokens():
    own = {name: {"encoder": "a", "layer": 2} for name in ("bertscore", "refscore")}
    plan = _parsed(900, "refscore", "bertscore", own=own)
    assert list(plan) == ["reference_sentences", "refscore", "embedded_references", "bertscore"]
    assert {name: task.kind for name, task in plan.items()} == {name: name for name in plan}
    assert plan["reference_sentences"].parameters == plan["embedded_references"].parameters
    assert len(plan["reference_sentences"].parts) == 5
    assert plan["refscore"].inputs["reference_sentences"] is plan["reference_sentences"]
    assert set(plan["bertscore"].inputs) == {"captions", "embedded_references"}


def test_variety_looks_at_the_training_captions_where_there_are_some():
    assert list(_parsed(9, "variety")) == ["variety"]
    known = _parsed(9, "variety", training="train")
    assert known["training"].parameters == {"split": "train", "tokenizer": "ptb"}
    assert known["variety"].inputs["training"] is known["training"]


def test_a_forecast_stands_right_behind_the_pregen_scores_that_it_reads():
    plans = (
        _plan(history="sha256:h"),
        plan_brought_columns("sha256:b", None, pregen=True, history="sha256:h"),
    )
    for plan in plans:
        names = list(plan.named)
        assert names[names.index("pregen") + 1] == "forecast"
        read = {"pregen": plan.named["pregen"], "history": Blob("sha256:h")}
        assert plan.named["forecast"].inputs == read


def test_brought_columns_are_scored_before_captions_and_need_no_model():
    captions = plan_captions("sha256:c", "sha256:d", "test", 3, PostgenRequest(["cider_d"], "ptb"))
    plan = plan_brought_columns("sha256:b", captions, pregen=True)
    assert list(plan.named) == ["columns", "pregen", *captions.named]
    columns = plan.named["columns"]
    assert (columns.kind, columns.inputs, columns.parameters) == (
        "brought",
        {"columns": Blob("sha256:b")},
        {},
    )
    assert plan.named["pregen"].inputs == {"columns": columns}
    assert plan.named["cider_d"].key == captions.named["cider_d"].key
    assert list(plan_brought_columns("sha256:b", None, pregen=False).named) == ["columns"]
