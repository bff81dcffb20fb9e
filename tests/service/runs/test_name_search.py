"""Search by a part of a name, in a record that is filled by hand: which things are found, and which
come first.
"""

import json
import random
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from helpers import outside
from helpers.stored_records import PINNED, enter_run, open_empty_record
from service.contract.assets import AssetFolders
from service.contract.formats.bundles import BundleItem
from service.engine import database
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.service_parts import ServiceParts
from service.engine.tables import datasets
from service.engine.task_queue import InProcessQueue
from service.runs import name_search
from service.stored import datasets as stored_datasets
from service.stored import splits

MARKS = {  # by evaluation: labels, note
    "ev_Aalpha": ({"branch": "main", "run": "north"}, None),
    "ev_Abeta": ({"branch": "main-2", "run": "North-2", "step": "100%"}, None),
    "ev_Agamma": ({"branch": "not_main", "run": "true north"}, "seen by the Director"),
    "ev_Adelta": ({"system": "STRASSE ÄÖ"}, "main idea: 100 words"),
    "ev_Aepsilon": ({}, None),
}
IMAGES = {
    "flowers": {"train": ["rose_1.jpg", "Rose_2.jpg", "a rose.jpg"], "test": ["tulip.jpg"]},
    "Roses": {"test": ["bud.jpg"]},
}


@pytest.fixture(
    scope="module",
    params=[pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.slow)],
)
def parts(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    with ExitStack() as stack:
        if request.param == "postgresql":
            url = stack.enter_context(outside.or_skip(outside.postgres_database()))
            engine = database.open_database(url)
            database.migrate_database(engine)
        else:
            engine = open_empty_record(folder)
        stack.callback(engine.dispose)
        records = Records(engine)
        blobs = open_blobs(None, folder, None)
        whole = ServiceParts(records, blobs, InProcessQueue(lambda key: None), AssetFolders(folder))
        _fill(records, blobs, folder)
        yield replace(whole, records=records.of("local"))


def _fill(records, blobs, folder):
    with records.transaction() as connection:
        for at, (identity, (marks, note)) in enumerate(MARKS.items()):
            enter_run(connection, identity, PINNED, marks=marks, note=note, created_at=float(at))
        on = replace(PINNED, name="flowers", split="train")
        enter_run(connection, "ev_old", on, created_at=1.0)
        enter_run(connection, "ev_latest", on, created_at=3.0)
        enter_run(connection, "ev_failed", on, created_at=4.0, status="failed")
        enter_run(connection, "cp_main", PINNED, marks={"branch": "main"}, kind="comparison")
        enter_run(
            connection, "ev_theirs", PINNED, marks={"run": "north"}, team="others", note="main"
        )
        for at, (name, found) in enumerate(IMAGES.items()):
            for version in (1, 2):
                captions = f"sha256:{at}{version}".ljust(71, "0")
                counts = {
                    split: {"images": len(names), "references": 1} for split, names in found.items()
                }
                if version == 1:
                    counts["removed"] = {"images": 1, "references": 1}
                _enter_dataset(connection, name, version, captions, counts)
            _write_images(blobs, folder, captions, found)
        _enter_dataset(connection, "unused", 1, "sha256:9".ljust(71, "0"), {"all": {"images": 1}})
        _enter_dataset(
            connection, "theirs", 1, "sha256:8".ljust(71, "0"), {"all": {"images": 1}}, "others"
        )


def _enter_dataset(connection, name, version, captions, counts, team="local"):
    row = {"team": team, "name": name, "version": version, "captions": captions, "bytes": 1}
    row |= {
        "digest": f"{captions[:-1]}{version}",
        "content": captions,
        "created_at": float(version),
    }
    connection.execute(datasets.insert().values(**row, splits=json.dumps(counts)))


def _write_images(blobs, folder, captions, found):
    path = folder / "images"
    with closing(splits.SplitWriter(path)) as writer:
        for split, names in found.items():
            for at, name in enumerate(names):
                writer.add(1, BundleItem(name, split, ("a",), f"{split}{700 + at}"))
        assert writer.end() is None
    stored_datasets.keep_images(blobs, path, captions)


def _names(parts, text, kind=None, limit=20):
    found = name_search.search_names(parts, text, limit)
    return [one.name for one in found if kind in (None, one.kind)]


@pytest.mark.parametrize("text", ["north", "NORTH", "nOrTh"])
def test_trainings_are_found_in_any_case_the_equal_one_first(parts, text):
    assert _names(parts, text, "training") == ["north", "North-2", "true north"]


def test_a_training_tells_its_split_and_how_many_evaluations(parts):
    found = name_search.search_names(parts, "true north", 20)
    (training,) = [one for one in found if one.kind == "training"]
    assert (training.run, training.dataset, training.detail) == (
        "true north",
        "d/test",
        "1 evaluation",
    )


def test_evaluations_are_found_by_labels_notes_and_ids_the_latest_of_equal_ones_first(parts):
    assert _names(parts, "main", "evaluation") == [
        "ev_Aalpha",
        "ev_Adelta",
        "ev_Abeta",
        "ev_Agamma",
    ]
    assert _names(parts, "ev_aBE", "evaluation") == ["ev_Abeta"]
    assert _names(parts, "director", "evaluation") == ["ev_Agamma"]
    by_id = {one.name: one for one in name_search.search_names(parts, "main", 20)}
    assert by_id["ev_Abeta"].detail == "branch=main-2"
    assert by_id["ev_Adelta"].detail == "main idea: 100 words"
    assert by_id["ev_Abeta"].run == "North-2"
    assert by_id["ev_Abeta"].evaluation == "ev_Abeta"


def test_other_kinds_of_runs_and_other_teams_are_not_found(parts):
    for text in ("cp_main", "ev_theirs", "theirs"):
        assert _names(parts, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100%", ["ev_Abeta"]),
        ("%", ["ev_Abeta"]),
        ("_main", ["ev_Agamma"]),
        ("\\", []),
        ("n_rth", []),
        ("'; DROP TABLE runs; --", []),
    ],
)
def test_signs_of_patterns_are_text(parts, text, expected):
    assert _names(parts, text, "evaluation") == expected


@pytest.mark.parametrize("text", ["ÄÖ", "äö", "strasse ä"])
def test_letters_that_are_not_ascii_are_found_in_any_case(parts, text):
    assert _names(parts, text, "evaluation") == ["ev_Adelta"]
    assert _names(parts, "äü", "evaluation") == []


def test_splits_are_those_of_the_latest_versions(parts):
    assert _names(parts, "rose", "split") == ["Roses/test"]
    assert _names(parts, "FLOWERS", "split") == ["flowers/train", "flowers/test"]
    assert _names(parts, "removed") == []
    (split,) = name_search.search_names(parts, "flowers/te", 20)
    assert (split.kind, split.dataset, split.detail) == ("split", "flowers/test", "1 image")


def test_images_are_found_by_name_and_id_with_an_evaluation_of_their_split(parts):
    found = [one for one in name_search.search_names(parts, "rose", 20) if one.kind == "image"]
    assert [one.image for one in found] == ["rose_1.jpg", "Rose_2.jpg", "a rose.jpg"]
    assert {(one.dataset, one.evaluation) for one in found} == {("flowers/train", "ev_latest")}
    (image,) = [
        one for one in name_search.search_names(parts, "test700", 20) if one.dataset == "Roses/test"
    ]
    assert (image.name, image.image, image.evaluation) == ("bud.jpg", "bud.jpg", None)


def test_of_many_images_only_beginnings_are_sought(parts, monkeypatch):
    monkeypatch.setattr(splits, "_SCANNED", 2)
    assert _names(parts, "rose", "image") == ["rose_1.jpg", "Rose_2.jpg"]
    assert _names(parts, "ROSE_2", "image") == ["Rose_2.jpg"]
    assert _names(parts, "ose_2", "image") == []


def test_images_that_this_machine_has_not_are_not_made_for_a_search(parts):
    assert _names(parts, "unused") == ["unused/all"]


def test_metrics_tell_the_first_sentence_of_their_definition(parts):
    found = name_search.search_names(parts, "cider", 20)
    metrics = [one for one in found if one.kind == "metric"]
    assert [one.metric for one in metrics] == ["cider", "cider_d"]
    assert all(one.detail.endswith(".") and ". " not in one.detail for one in metrics)
    assert _names(parts, "perplexity", "metric")[0] == "perplexity"


def test_kinds_are_balanced_and_better_matches_come_first(parts):
    found = name_search.search_names(parts, "e", 8)
    assert len(found) == 8
    every = {"split", "training", "evaluation", "metric", "image"}
    assert {one.kind for one in found} == every
    found = name_search.search_names(parts, "main", 20)
    ranks = [_rank("main", one) for one in found]
    assert ranks == sorted(ranks)


def _rank(text, match):
    """How well a match fits, by the definition."""
    texts = [match.name, *match.detail.split("="), match.detail]
    return min(
        0 if each == text else 1 if each.startswith(text) else 2 for each in texts if text in each
    )


def test_a_label_that_all_have_leaves_the_equal_one_first(parts):
    """More rows match than are read, and the best one is the oldest."""
    rng = random.Random(1)
    with parts.records.of_all.transaction() as connection:
        on = replace(PINNED, name="many")
        enter_run(connection, "ev_M", on, marks={"number": "7"}, created_at=0.5)
        for at in range(300):
            marks = {"number": f"7{rng.random()}"}
            enter_run(connection, f"ev_M{at}", on, marks=marks, created_at=10.0 + at)
    found = [one for one in name_search.search_names(parts, "7", 5) if one.kind == "evaluation"]
    assert found[0].name == "ev_M"


def test_signs_of_patterns_are_text_where_very_many_would_match(parts):
    with parts.records.of_all.transaction() as connection:
        on = replace(PINNED, name="signs")
        enter_run(connection, "ev_S", on, marks={"sign": "zzx_y"}, created_at=0.5)
        for at in range(300):
            enter_run(
                connection, f"ev_S{at}", on, marks={"sign": f"zzxXy{at}"}, created_at=9.0 + at
            )
    assert _names(parts, "x_y", "evaluation", limit=5) == ["ev_S"]
