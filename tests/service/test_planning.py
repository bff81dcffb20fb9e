from service import planning
from service.planning import PART_IMAGES, plan_captions, plan_checkpoint

DECODING = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}


def _plan(images=1000, **more):
    given = {"pregen": True, "families": ["bleu", "cider_d"], "tokenizer": "ptb"}
    return plan_checkpoint(
        "sha256:c", "sha256:d", "test", images, decoding=DECODING, **given | more
    )


def test_a_checkpoint_gets_prefix_columns_pregen_captions_and_a_work_a_family():
    assert list(_plan().named) == [
        *("prefix", "columns", "pregen", "captions", "references", "bleu", "cider_d")
    ]


def test_without_postgen_metrics_nothing_is_decoded():
    assert list(_plan(families=[]).named) == ["prefix", "columns", "pregen"]


def test_without_pregen_scores_nothing_is_teacher_forced():
    assert list(_plan(pregen=False).named) == ["captions", "references", "bleu", "cider_d"]


def test_captions_that_were_sent_need_no_model():
    plan = plan_captions("sha256:o", "sha256:d", "test", families=["meteor"], tokenizer="none")
    assert [work.kind for work in plan.everything()] == ["references", "meteor"]


def test_a_large_split_is_sharded_in_whole_blocks():
    size = PART_IMAGES["columns"]
    columns = _plan(images=2 * size + 5).named["columns"]
    spans = [part.parameters["images"] for part in columns.parts]
    assert spans == [
        [0, size],
        [size, 2 * size],
        [2 * size, 2 * size + 5],
    ]
    assert columns.key == _plan(images=9).named["columns"].key
    assert all(size % planning.BLOCK_IMAGES == 0 for size in PART_IMAGES.values())


def test_everything_comes_after_what_it_needs_and_once():
    found = _plan(images=5000).everything()
    keys = [work.key for work in found]
    assert len(set(keys)) == len(keys)
    for place, work in enumerate(found):
        assert all(need.key in keys[:place] for need in work.needs)


def test_another_tokenizer_changes_what_depends_on_it_and_nothing_else():
    ptb, plain = _plan().named, _plan(tokenizer="none").named
    changed = {name for name in ptb if ptb[name].key != plain[name].key}
    assert changed == {"references", "bleu", "cider_d"}


def test_the_engines_blocks_are_the_planners():
    from workers import decoding, scoring

    assert scoring.BLOCK_IMAGES == decoding.BLOCK_IMAGES == planning.BLOCK_IMAGES
