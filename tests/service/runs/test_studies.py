"""Which evaluations are studied, and when: on either database, from rows as tasks leave them."""

import hashlib
import json
import time

import pytest
import sqlalchemy as sa

from helpers import stored_records
from service.contract.api.analyses import StudyRequest
from service.contract.column_options import ColumnOptions
from service.contract.errors import InvalidRequest, NotFound
from service.contract.plan import planning
from service.contract.plan.postgen import PostgenRequest
from service.engine import summaries
from service.engine.blobs import open_blobs
from service.engine.tables import brought_columns, needs, run_tasks, runs, task_rows
from service.runs import correlation_studies, correlations, run_store
from service.runs.correlations import CorrelationsQuery
from service.runs.kinds import KINDS, submit_run
from service.runs.run_store import NewRun
from service.stored import datasets, uploaded_files

# The queries are alike in all tests: those that write, and read what has ended, run on both.
on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
DECODING = {"beam": 3, "min_words": 4, "max_words": 50, "unk": False}
PERPLEXITY = "geomean_join_pplx_none"


@pytest.fixture
def parts(on_either, tmp_path):
    """On a queue that nobody listens to: what tasks would leave is written by the tests."""
    _add(on_either, "coco", 9)
    return stored_records.parts_on(on_either, open_blobs(None, tmp_path))


def _add(records, name, images):
    splits = {"test": {"images": images, "references": 45}}
    digest = _digest(name)
    features = {"encoder": {"name": "e", "digest": "none"}, "size": 5}
    stored_records.add_version(records, name, digest, {"splits": splits, "features": features})


def _digest(text):
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _finish(records, name, *, dataset="coco/test", families=("cider_d", "bleu"), **facts):
    """An evaluation of a checkpoint of this name, and all its tasks done; `signed` tells how."""
    pinned = datasets.pin_split(records, dataset)
    plan = planning.CheckpointPlanner(
        _digest(facts.get("checkpoint", name)),
        *(pinned.digest, pinned.split, pinned.images),
        pregen=facts.get("pregen", True),
        wanted=PostgenRequest(families, "ptb", models=facts.get("models", {})),
        decoding=DECODING,
        options=ColumnOptions(**facts.get("options", {})),
    ).plan()
    brought = facts.get("brought")  # description and units
    if brought is not None:
        uploaded_files.add_file(records, brought_columns, _digest(f"columns {name}"), 1, brought[0])
        wanted = PostgenRequest(families, "ptb")
        captions = planning.plan_captions(
            _digest(f"captions {name}"), pinned.digest, pinned.split, pinned.images, wanted
        )
        plan = planning.plan_brought_columns(
            _digest(f"columns {name}"),
            captions,
            pinned.people,
            pregen=True,
            options=ColumnOptions(units=brought[1]),
        )
    run = NewRun(
        f"ev_{name}",
        "evaluation",
        {"checkpoint": _digest(name), "pregen": None, "postgen": [], "subset": False},
        pinned,
        plan,
        [],
        3600,
        checkpoint=None if brought else _digest(name),
    )
    with records.transaction() as connection:
        run_store.insert_run(connection, records, run)
        for task in plan.everything():
            signature = facts.get("signed", {}).get(task.kind, f"{task.kind}|v:1")
            scores = {"scores": {task.kind: 0.5}, "signature": {task.kind: signature}}
            decoded = {"decoded": 9, "distinct": 9}
            _done(connection, task.key, decoded if task.kind == "captions" else scores)
        _end(connection, run.id, facts.get("status", "succeeded"))


def _finish_three(records, **facts):
    for name in ("a", "b", "c"):
        _finish(records, name, **facts)


def _done(connection, key, summary):
    connection.execute(
        task_rows.update()
        .where(task_rows.c.key == key)
        .values(status="done", result=_digest(key), summary=json.dumps(summary))
    )


def _end(connection, identity, status, tasks=(), finished_at=None):
    connection.execute(
        runs.update()
        .where(runs.c.id == identity)
        .values(
            status=status,
            finished_at=finished_at or time.time(),
            snapshot=summaries.pack_json(list(tasks)),
        )
    )


def _ask(parts, dataset="coco/test", **asked):
    """The answer to who asks for a study."""
    asked = StudyRequest(dataset=dataset, **asked)
    identity = submit_run(parts, KINDS["study"], asked).identity
    return correlation_studies.KIND.look(parts, identity)[0]


def _told(parts, name="coco", **asked):
    return correlations.find_correlations(parts, CorrelationsQuery(name, **asked))


def _study(records):
    """The id of the last one that was planned."""
    query = sa.select(runs.c.id).where(runs.c.kind == "study")
    with records.reading() as connection:
        order = runs.c.created_at.desc(), runs.c.id
        return connection.execute(query.order_by(*order)).scalars().first()


def _kept(records):
    with records.reading() as connection:
        query = sa.select(runs.c.request).where(runs.c.id == _study(records))
        return json.loads(connection.execute(query).scalar_one())


def _needs(records):
    """The inputs and parameters of the tasks that the last study waits for, by evaluations' ids."""
    with records.reading() as connection:
        own = sa.select(run_tasks.c.task_key).where(run_tasks.c.run_id == _study(records))
        study = connection.execute(sa.select(task_rows).where(task_rows.c.key.in_(own))).one()
        needed = sa.select(needs.c.needs_key).where(needs.c.task_key == study.key)
        found = connection.execute(sa.select(task_rows).where(task_rows.c.key.in_(needed)))
        strata = {f"work:{row.key}": row for row in found}
    named = json.loads(study.inputs)
    assert set(strata) == set(named.values())
    return {
        name: (json.loads(strata[key].inputs), json.loads(strata[key].parameters))
        for name, key in named.items()
    }


def _result(parts, status="succeeded", finished_at=None):
    """The last study has ended so; its correlations are 30 for each of two metrics."""
    found = {
        "r": 0.5,
        "r2": 0.25,
        "p": 0.01,
        "datasets": {
            "coco@v1/test": {
                "r": 0.5, "r2": 0.25, "p": 0.01, "spearman": -0.5, "spearman_p": None, "models": 3
            }
        },
    }  # fmt: skip
    listed = [{**found, "metric": f"metric {n}"} for n in range(29)]
    listed.append({**found, "metric": PERPLEXITY})
    metric = {"rows": 45, "of_images": 0.75, "reason": None, "correlations": listed}
    none = {"rows": 2, "of_images": None, "reason": "few", "correlations": []}
    content = {
        "idf": "dataset",
        "rows": 45,
        "models": 3,
        "pregen": {"of": 672, "remain": 30, "infinite": 600, "constant": 42},
        "metrics": {"cider_d": metric, "spice": none},
    }
    result = parts.blobs.put(json.dumps(content).encode())
    with parts.records.transaction() as connection:
        _end(connection, _study(parts.records), status, [{"result": result}], finished_at)


@on_sqlite
def test_a_study_needs_three_checkpoints_and_five_images_and_looking_makes_none(parts):
    few = "of 3 models with pre-gen scores and cider_d; coco/test has 2"
    _add(parts.records, "tiny", 4)
    for name in ("x", "y", "z"):
        _finish(parts.records, name, dataset="tiny/test")
    no_strata = "a study needs 5 images, and tiny/test has 4"
    assert _told(parts, "tiny", split="test").none_because == no_strata
    _add(parts.records, "other", 9)
    _finish(parts.records, "elsewhere", dataset="other/test")
    for name in ("a", "b"):
        _finish(parts.records, name)
    found = _told(parts)
    assert (found.study, found.under_way) == (None, None)
    assert few in found.none_because
    with pytest.raises(NotFound, match="has no split 'val'"):
        _told(parts, split="val")
    with pytest.raises(InvalidRequest, match=few) as refused:
        _ask(parts)
    assert refused.value.problems[0][0] == "/dataset"
    _finish(parts.records, "c")
    found = _told(parts)
    assert (found.none_because, found.under_way, _study(parts.records)) == (None, None, None)
    asked = _ask(parts)
    assert (asked.status, asked.study, asked.idf) == ("queued", None, "dataset")
    found = _told(parts)
    assert found.under_way.status == "queued"
    assert (found.under_way.progress.done, found.under_way.progress.total) == (0, 3)
    with pytest.raises(NotFound, match="no study of coco@v1/test has finished"):
        list(correlations.build_correlations_table(parts, CorrelationsQuery("coco")))
    assert _ask(parts).id != asked.id
    with parts.records.reading() as connection:
        of = sa.select(task_rows.c.key).where(task_rows.c.kind == "study")
        assert len(connection.execute(of).all()) == 1


def test_strata_are_made_of_columns_and_scores_and_where_documents_are_counted_of_captions(parts):
    _finish_three(parts.records)
    _ask(parts)
    found = _needs(parts.records)
    assert set(found) == {"ev_a", "ev_b", "ev_c"}
    inputs, parameters = found["ev_a"]
    assert set(inputs) == {"columns", "cider_d", "bleu"}
    assert all(digest.startswith("sha256:") for digest in inputs.values())
    assert parameters == {"idf": "dataset"}
    _ask(parts, idf="stratum")
    inputs, parameters = _needs(parts.records)["ev_a"]
    assert set(inputs) == {"columns", "cider_d", "bleu", "captions", "references"}
    assert parameters == {"idf": "stratum"}


def test_what_has_finished_is_told_until_more_evaluations_have_been_studied(parts):
    _finish_three(parts.records)
    _ask(parts)
    _result(parts)
    found = _told(parts)
    assert found.under_way is None
    assert found.study.evaluations == ("ev_c", "ev_b", "ev_a")
    assert found.study.metrics["spice"].reason == "few"
    told = found.study.metrics["cider_d"]
    assert (told.of_images, len(told.correlations)) == (0.75, 21)
    assert [each.place for each in told.correlations] == [*range(1, 21), 30]
    assert told.correlations[-1].metric == PERPLEXITY  # headline
    assert (told.correlations[0].spearman, told.correlations[0].models) == (-0.5, 3)

    _finish(parts.records, "d")
    assert _told(parts) == found
    _ask(parts)
    more = _told(parts, limit=0)
    assert more.study.evaluations == found.study.evaluations
    assert more.under_way.progress.total == 4
    assert [each.place for each in more.study.metrics["cider_d"].correlations] == [30]
    lines = list(correlations.build_correlations_table(parts, CorrelationsQuery("coco")))
    assert len(lines) == 31
    assert lines[1] == ["cider_d", 1, "metric 0", 0.5, 0.25, 0.01, -0.5, None, 3]


@on_sqlite
def test_what_no_strata_can_be_made_of_is_left_out_with_the_reason(parts):
    _finish_three(parts.records)
    _finish(parts.records, "half", options={"precision": "bf16"})
    _finish(parts.records, "pieces", options={"units": "pieces"})
    _finish(parts.records, "prompted", options={"prompt": "caption en"})
    _finish(parts.records, "pure", pregen=False)
    _finish(parts.records, "unsorted", families=("bleu",))
    _finish(parts.records, "gone", status="canceled")
    _finish(parts.records, "silent", brought=(OWN, "words"), families=())
    _finish(parts.records, "late", status="failed")  # by another metric
    _ask(parts)
    kept = _kept(parts.records)
    prompt = "prompt:" + hashlib.sha256(b"caption en").hexdigest()[:16]
    assert kept["evaluations"] == ["ev_late", "ev_c", "ev_b", "ev_a"]
    assert [(each["evaluation"], each["reason"]) for each in kept["left_out"]] == [
        ("ev_silent", "it has no captions, references, cider_d; strata are made by cider_d"),
        ("ev_unsorted", "it has no cider_d; strata are made by cider_d"),
        ("ev_pure", "it has no columns; strata are made by cider_d"),
        ("ev_prompted", f"its columns are of fp32, {prompt}, most are of fp32"),
        ("ev_pieces", "its columns are of fp32, pieces, most are of fp32"),
        ("ev_half", "its columns are of bf16, most are of fp32"),
    ]


def test_scores_of_another_signature_are_left_out(parts):
    _finish_three(parts.records)
    _finish(parts.records, "d", signed={"cider_d": "cider_d|tok:none|v:1"})
    _finish(parts.records, "e", signed={"bleu": "bleu|v:2"})
    _ask(parts)
    kept = _kept(parts.records)
    assert kept["evaluations"] == ["ev_e", "ev_c", "ev_b", "ev_a"]
    assert [(each["evaluation"], each["metric"]) for each in kept["left_out"]] == [
        ("ev_d", None),
        ("ev_e", "bleu"),
    ]
    assert "cider_d|tok:none|v:1" in kept["left_out"][0]["reason"]
    found = _needs(parts.records)
    assert set(found["ev_e"][0]) == {"columns", "cider_d"}
    assert set(found["ev_a"][0]) == {"columns", "cider_d", "bleu"}


OWN = {"tokenizer": "own"}
PIECES = {"tokenizer": "karpathy", "pieces": "bpe"}


def test_brought_columns_are_studied_with_the_captions_beside_them(parts):
    _finish_three(parts.records, brought=(OWN, "words"))
    for name in ("a", "b", "c"):
        parts.blobs.put(f"captions {name}".encode())
    _ask(parts, idf="stratum")
    found = _needs(parts.records)
    assert set(found) == {"ev_a", "ev_b", "ev_c"}
    inputs, _ = found["ev_a"]
    assert set(inputs) == {"columns", "cider_d", "bleu", "captions", "references"}
    assert inputs["captions"] == _digest("captions a")


def test_columns_of_another_signature_are_left_out(parts):
    _finish_three(parts.records, brought=(PIECES, "words"))
    _finish(parts.records, "own", brought=(OWN, "words"))
    _finish(parts.records, "pieces", brought=(PIECES, "pieces"))
    _finish(parts.records, "checkpoint")
    _ask(parts)
    kept = _kept(parts.records)
    assert kept["evaluations"] == ["ev_c", "ev_b", "ev_a"]
    most = "most are of brought|tok:karpathy|units:words"
    assert {each["evaluation"]: each["reason"] for each in kept["left_out"]} == {
        "ev_own": f"its columns are of brought|tok:own, {most}",
        "ev_pieces": f"its columns are of brought|tok:bpe|units:pieces, {most}",
        "ev_checkpoint": f"its columns are of fp32, {most}",
    }


@on_sqlite
def test_learned_metrics_are_told_apart_by_their_models(parts):
    models = {f"nneval@{n * 12}": _digest(n) for n in "ab"}
    families = ("cider_d", "nneval", *models)
    _finish_three(parts.records, families=families, models=models)
    _ask(parts)
    assert set(_needs(parts.records)["ev_a"][0]) == {"columns", "cider_d", "nneval", *models}
    assert _kept(parts.records)["left_out"] == []


@on_sqlite
def test_only_so_many_of_the_latest_are_studied_and_a_model_counts_once(parts, monkeypatch):
    monkeypatch.setattr("service.runs.correlation_studies._MOST", 4)
    for name in ("a", "b", "c", "d"):
        _finish(parts.records, name)
    _finish(parts.records, "again", checkpoint="c")
    _ask(parts)
    assert _kept(parts.records)["evaluations"] == ["ev_again", "ev_d", "ev_b"]


@on_sqlite
def test_a_failed_study_is_told_and_tried_again_by_who_asks(parts):
    _finish_three(parts.records)
    _ask(parts)
    first, error = _study(parts.records), {"code": "timeout", "detail": "it took too long"}
    with parts.records.transaction() as connection:
        own = sa.select(run_tasks.c.task_key).where(run_tasks.c.run_id == first)
        key = connection.execute(own).scalar_one()
        connection.execute(
            task_rows.update()
            .where(task_rows.c.key == key)
            .values(status="failed", error=json.dumps(error))
        )
    _result(parts, "failed")
    found = _told(parts)
    assert (found.study, found.under_way.status) == (None, "failed")
    assert found.under_way.error.model_dump() == error
    _ask(parts)
    found = _told(parts)
    assert (found.under_way.status, found.under_way.error) == ("queued", None)
    assert _study(parts.records) != first


@on_sqlite
def test_an_evaluation_whose_strata_fail_spoils_no_other_study(parts):
    for name in ("a", "b", "c", "d"):
        _finish(parts.records, name)
    _ask(parts)
    broken = json.dumps(_needs(parts.records)["ev_b"][0])
    with parts.records.transaction() as connection:
        connection.execute(
            task_rows.update()
            .where(task_rows.c.kind == "strata", task_rows.c.inputs == broken)
            .values(status="failed", error=json.dumps({"code": "x", "detail": "damaged columns"}))
        )
    _result(parts, "failed")
    _ask(parts)
    assert _kept(parts.records)["evaluations"] == ["ev_d", "ev_c", "ev_a"]
    (left,) = _kept(parts.records)["left_out"]
    assert (left["evaluation"], left["reason"]) == ("ev_b", "its strata failed: damaged columns")
