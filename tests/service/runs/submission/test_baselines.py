"""Which evaluation of the past a gate is held against."""

import json

import pytest

from helpers import stored_records
from helpers.stored_records import parts_on, take_task
from service.contract.errors import NotFound
from service.contract.plan.planning import plan_captions
from service.contract.plan.postgen import PostgenRequest
from service.engine import leases
from service.engine.blobs.folder import FileBlobs
from service.engine.service_parts import ServiceParts
from service.runs import evaluations, run_store
from service.runs.run_store import NewRun
from service.runs.submission import baselines
from service.runs.submission.baselines import BaselineRequest
from service.stored import datasets

SIGNATURE = "cider_d|refs:5|tok:ptb|v:2"
IMAGES = 9


@pytest.fixture
def blobs(tmp_path):
    return FileBlobs(tmp_path / "blobs")


def _with_coco(records):
    stored_records.add_version(records, "coco", "a")
    return records


@pytest.fixture
def records(records):
    return _with_coco(records)


@pytest.fixture
def on_either(on_either):
    return _with_coco(on_either)


def _evaluated(
    records,
    blobs,
    value,
    *,
    metric="cider_d",
    signature=SIGNATURE,
    until=None,
    images=range(IMAGES),
    dataset="coco/test",
    **marked,
):
    """The id of an evaluation that was run; up to the task `until`."""
    pinned = datasets.pin_split(records, dataset)
    captions = blobs.put(json.dumps([[at, f"{metric} {value} {marked}"] for at in images]).encode())
    wanted = PostgenRequest([metric.removesuffix("_distance")], "ptb")
    plan = plan_captions(captions, pinned.digest, pinned.split, IMAGES, wanted)
    identity = f"ev_{captions[-30:]}"
    partial = len(images) < IMAGES
    kept = {"checkpoint": None, "postgen": [metric], "subset": partial}
    with records.transaction() as connection:
        run = NewRun(identity, "evaluation", kept, pinned, plan, [], 1e9, labels=marked)
        run_store.insert_run(connection, records, run)
    summary = {"scores": {metric: value}, "signature": {metric: signature}}
    for task in plan.everything():
        lease = take_task(records, task.key, "w")
        if lease is not None and task.kind != until:
            found = {} if task.kind == "references" else summary
            leases.finish_attempt(records, lease, blobs.put(task.key.encode()), found)
    return identity


def _find(
    records, blobs, text, metric="cider_d", dataset="coco/test", images=range(IMAGES), labels=()
):
    places = None if len(images) == IMAGES else frozenset(images)
    sought = BaselineRequest(text, datasets.pin_split(records, dataset), places, dict(labels))
    found = baselines.find_baselines(parts_on(records, blobs), sought, [metric])[metric]
    return found.model_dump(exclude_unset=True)


def test_a_label_is_the_latest_evaluation_that_has_it(on_either, blobs):
    _evaluated(on_either, blobs, 0.9, branch="main")
    latest = _evaluated(on_either, blobs, 0.4, branch="main")
    _evaluated(on_either, blobs, 0.6, branch="other")
    _evaluated(on_either, blobs, 0.7)
    found = _find(on_either, blobs, "branch=main")
    assert found == {
        "evaluation": latest,
        "scored_on": "coco@v1/test",
        "label": "branch=main",
        "failed": False,
        "value": 0.4,
        "interval": None,
        "signature": SIGNATURE,
        "result": found["result"],
    }
    assert blobs.has(found["result"])


def test_a_label_s_value_may_have_an_equals_sign(records, blobs):
    one = _evaluated(records, blobs, 0.4, run="lr=0.1")
    assert _find(records, blobs, "run=lr=0.1")["evaluation"] == one
    assert "run=lr has succeeded" in _find(records, blobs, "run=lr")["none_because"]


def test_a_mistyped_label_is_told_with_the_right_one_and_is_no_first_run(on_either, blobs):
    _evaluated(on_either, blobs, 0.4, branch="main", author="ann")
    for labels in ({}, {"branch": "main"}, {"commit": "mian"}):
        found = _find(on_either, blobs, "branch=mian", labels=labels)
        assert found == {"none_because": found["none_because"]}
        assert found["none_because"].endswith(
            "has succeeded; did you mean branch=main? if not, the first run is one that has the "
            "label branch=mian"
        )
    unseen = [("branch=release", "cider_d", "has succeeded"), ("best", "spice", "has this score")]
    for text, metric, end in unseen:
        found = _find(on_either, blobs, text, metric)
        assert found["none_because"].endswith(end)
        assert found["is_first"]
    evil = _find(on_either, blobs, "branch=\x1b[2J\nmain")["none_because"]
    assert r"the label branch=\x1b[2J\nmain has" in evil


@pytest.mark.parametrize("wanted", ["release-2", "lr=0.2"])
def test_a_run_with_the_label_itself_is_the_first_however_near_other_labels_are(
    records, blobs, wanted
):
    """The next run finds it: what it passes, it passes once."""
    _evaluated(records, blobs, 0.4, branch="release-1")
    _evaluated(records, blobs, 0.4, branch="lr=0.1")
    found = _find(records, blobs, f"branch={wanted}", labels={"branch": wanted})
    assert found == {
        "none_because": "no baseline yet: no evaluation of coco@v1/test with the label "
        f"branch={wanted} has succeeded",
        "is_first": True,
    }


def test_an_evaluation_without_the_metric_is_passed_over(records, blobs):
    older = _evaluated(records, blobs, 0.4, branch="main")
    newer = _evaluated(records, blobs, 0.3, metric="meteor", branch="main")
    assert _find(records, blobs, "branch=main")["evaluation"] == older
    assert _find(records, blobs, "branch=main", "meteor")["evaluation"] == newer
    assert _find(records, blobs, "branch=main", "spice") == {
        "none_because": f"{newer} has no spice"
    }


def test_one_that_has_not_succeeded_is_no_baseline_by_its_label_but_is_by_its_id(records, blobs):
    going = _evaluated(records, blobs, 0.4, branch="main", until="cider_d")
    assert _find(records, blobs, going) == {"none_because": f"{going} has no cider_d"}
    run_store.cancel_run(ServiceParts(records, blobs, None, None), going, evaluations.KIND)
    assert "has succeeded" in _find(records, blobs, "branch=main")["none_because"]
    assert _find(records, blobs, "branch=main")["is_first"]


def test_a_run_with_the_label_that_has_not_ended_is_named_and_makes_it_no_first_run(
    on_either, blobs
):
    going = _evaluated(on_either, blobs, 0.4, branch="main", until="cider_d")
    assert _find(on_either, blobs, "branch=main") == {
        "none_because": f"no baseline yet: {going} with the label branch=main is running: submit "
        "this again when it has ended"
    }
    assert _find(on_either, blobs, "branch=other")["is_first"]
    assert _find(on_either, blobs, "best")["is_first"]
    older = _evaluated(on_either, blobs, 0.5, branch="main")
    assert _find(on_either, blobs, "branch=main")["evaluation"] == older


def test_where_no_baseline_is_found_the_version_that_has_one_is_named(on_either, blobs):
    """It is no first run then: whoever adds a version must not turn a gate."""
    records = on_either
    _evaluated(records, blobs, 0.4, metric="meteor", branch="main")
    old = _evaluated(records, blobs, 0.4, branch="main")
    stored_records.add_version(records, "coco", "b")
    stored_records.add_version(records, "other", "c")
    found = _find(records, blobs, old)["none_because"]
    assert "coco@v1/test" in found
    assert "coco@v2/test" in found
    assert _find(records, blobs, old, dataset="coco@v1/test")["value"] == 0.4
    for text in ("branch=main", "best"):
        found = _find(records, blobs, text)
        assert "no baseline yet: no evaluation of coco@v2/test" in found["none_because"]
        assert f"coco@v1/test, which has other captions, has {old}" in found["none_because"]
        assert "is_first" not in found
        first = _find(records, blobs, text, dataset="other/test")
        assert first["is_first"]
        assert "coco" not in first["none_because"]
    assert _find(records, blobs, "branch=new")["is_first"]
    assert _find(records, blobs, "best", "spice")["is_first"]


def test_a_baseline_may_have_other_features_but_not_other_captions(records, blobs):
    stored_records.add_version(records, "coco", "b", captions="a")
    old = _evaluated(records, blobs, 0.4, dataset="coco@v1/test", branch="main")
    for text in ("branch=main", "best", old):
        found = _find(records, blobs, text)
        assert (found["evaluation"], found["scored_on"]) == (old, "coco@v1/test")
        assert found["label"] == ("branch=main" if "=" in text else None)


def test_an_id_must_be_an_evaluation_s(records, blobs):
    for identity in ("ev_nobody", "pb_nobody"):
        with pytest.raises(NotFound):
            _find(records, blobs, identity)


def test_the_best_is_by_the_metric_s_direction(records, blobs):
    for value in (0.5, 0.7, 0.6):
        _evaluated(records, blobs, value)
        _evaluated(records, blobs, value, metric="wmd_distance", signature="w")
    assert _find(records, blobs, "best")["value"] == 0.7
    assert _find(records, blobs, "best", "wmd_distance")["value"] == 0.5


def test_the_best_is_of_those_that_were_computed_as_the_latest(on_either, blobs):
    _evaluated(on_either, blobs, 0.9, signature="cider_d|refs:5|tok:ptb|v:1")
    best = _evaluated(on_either, blobs, 0.6)
    _evaluated(on_either, blobs, 0.5)
    assert _find(on_either, blobs, "best")["evaluation"] == best


def test_an_infinite_score_is_no_baseline(records, blobs):
    _evaluated(records, blobs, float("inf"), branch="main")
    assert "infinite" in _find(records, blobs, "branch=main")["none_because"]
    assert "no baseline yet" in _find(records, blobs, "best")["none_because"]


def test_a_part_of_a_split_compares_with_the_same_part_alone(records, blobs):
    whole = _evaluated(records, blobs, 0.4, branch="main")
    part = _evaluated(records, blobs, 0.9, branch="main", images=range(3))
    assert _find(records, blobs, "branch=main")["evaluation"] == whole
    assert _find(records, blobs, "best")["evaluation"] == whole
    assert _find(records, blobs, "branch=main", images=range(3))["evaluation"] == part
    assert _find(records, blobs, part) == {
        "none_because": f"{part} has captions of other images of the split"
    }
