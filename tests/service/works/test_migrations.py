"""The record of an older version, moved to this one and back, on either database."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import outside
from golden import home
from service.contract.api.probes import ProbesIn
from service.contract.metrics import catalogue
from service.runs import probes
from service.works import database
from service.works.kept import boards
from service.works.tables import metadata

KIND = {"ev": "evaluation", "cp": "comparison", "pb": "probes", "ln": "training", "st": "study"}


@pytest.fixture(params=["sqlite", "postgresql"])
def before(request, tmp_path) -> Iterator[sa.Engine]:
    """As version 0.1.0 filled it."""
    if request.param == "sqlite":
        engine = database.connect(f"sqlite:///{tmp_path / 'record.sqlite'}")
        home.restore_record(engine)
        yield engine
        engine.dispose()
        return
    with outside.or_skip(outside.postgres_database()) as url:
        engine = database.connect(url)
        home.restore_record(engine)
        yield engine
        engine.dispose()


def _rows(engine, table):
    found = sa.Table(table, sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        return sorted((dict(row._mapping) for row in connection.execute(sa.select(found))), key=str)


def _move(engine, to, *, back=False):
    with engine.begin() as connection:
        configuration = database._configuration()
        configuration.attributes["connection"] = connection
        (command.downgrade if back else command.upgrade)(configuration, to)


def test_every_run_is_found_by_its_kind_and_its_datasets_own_columns(before):
    then = {row["id"]: row for row in _rows(before, "evaluations")}
    _move(before, "0004")
    now = {row["id"]: row for row in _rows(before, "runs")}
    assert now.keys() == then.keys()
    assert {row["kind"] for row in now.values()} == set(KIND.values())
    for identity, row in now.items():
        pinned = json.loads(then[identity].pop("dataset"))
        assert row.pop("kind") == KIND[identity[:2]]
        assert f"v{row.pop('dataset_version')}" == pinned["version"]
        assert (row.pop("dataset_digest"), row.pop("split")) == (pinned["digest"], pinned["split"])
        assert row == then[identity]


@pytest.mark.long
def test_there_and_back_is_where_it_was(before):
    tables = sa.inspect(before).get_table_names()
    then = {name: _rows(before, name) for name in tables}
    _move(before, "head")
    _move(before, home.read("record")["revision"], back=True)
    assert {name: _rows(before, name) for name in sa.inspect(before).get_table_names()} == then


@pytest.mark.long
def test_migrations_make_the_tables_that_the_code_knows(before):
    _move(before, "head")
    with before.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


@pytest.mark.long
def test_scores_of_versions_with_the_same_captions_part_and_stay_as_they_were(before):
    """A board of two versions becomes two, each as if the other version had never been."""
    _move(before, "head")
    scores = _with_a_board_of_two(before)
    _move(before, "0007", back=True)
    boards_then = {row["id"]: row for row in _rows(before, "boards")}
    now = {(row["run_id"], row["metric"]): row for row in _rows(before, "scores")}
    assert now.keys() == scores.keys()
    digests = {row["id"]: row["dataset_digest"] for row in _rows(before, "runs")}
    for key, row in now.items():
        board = boards_then[row["board_id"]]
        assert board["dataset_digest"] == digests[row["run_id"]]
        assert {**row, **_DECIDED_ANEW} == {**scores[key], **_DECIDED_ANEW}
    for identity, board in boards_then.items():
        rows = [row for row in now.values() if row["board_id"] == identity]
        assert board["listed"] == sum(bool(row["listed"]) for row in rows)
        firsts = {row["same"] for row in rows if row["listed"]}
        assert len(firsts) == sum(bool(row["first"]) for row in rows)
    _move(before, "head")
    assert {row["dataset_captions"] for row in _rows(before, "boards")} == {*digests.values()}


_DECIDED_ANEW = dict.fromkeys(("board_id", "first", "same", "draws_id"))


def _with_a_board_of_two(engine):
    """All scores; the first runs of the largest board get another version of the same captions."""
    scores = _rows(engine, "scores")
    ((board, _),) = Counter(row["board_id"] for row in scores).most_common(1)
    some = sorted(row["run_id"] for row in scores if row["board_id"] == board)[:3]
    runs = sa.Table("runs", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        other = runs.update().where(runs.c.id.in_(some))
        connection.execute(other.values(dataset_digest="sha256:other"))
    return {(row["run_id"], row["metric"]): row for row in scores}


def test_old_scores_stand_on_boards_as_new_ones_do():
    """The migration knows the directions of the metrics of its day by heart."""
    later = {"chair_i", "chair_s", "corpus_perplexity"}
    migration = ScriptDirectory.from_config(database._configuration()).get_revision("0007").module
    for name in {*catalogue.METRICS} - later:
        assert migration._place(name, 0.25) == boards._place(name, 0.25), name
    row = {"board_id": 3, "value": 0.5, "low": -0.0, "high": None}
    assert migration._number("sha256:a", list(row.values())) == boards._same("sha256:a", row)


@pytest.mark.long
def test_what_waits_keeps_its_order_and_comes_before_what_is_new(before):
    _move(before, "0007")
    works = sa.Table("works", sa.MetaData(), autoload_with=before)
    keys = sorted(row["key"] for row in _rows(before, "works"))[:3]
    with before.begin() as connection:
        for place, key in enumerate(keys):
            late = works.update().where(works.c.key == key)
            connection.execute(late.values(status="ready", created_at=2e12 - place))
    _move(before, "head")
    turns = {row["key"]: row["turn"] for row in _rows(before, "works")}
    assert [turns.pop(key) for key in keys] == [0, -1, -2]
    assert set(turns.values()) == {0}
    assert {row["caller"] for row in _rows(before, "runs")} == {""}


REQUESTS = [
    {},
    {"metrics": ["bleu_1", "bleu_1", "cider_d"]},
    {"probes": ["human", "frequent", "rare", "swap", "random", "single"], "deadline": 60},
    {"probes": ["human"]},
    {"tokenizer": "none"},
    {"evaluation": "ev_a"},
    {"options": {"objective": "bleu_1"}},
]


@pytest.mark.parametrize("asked", REQUESTS)
def test_old_probes_are_marked_as_new_ones_are(asked):
    """The migration knows by heart which ones are usual."""
    migration = ScriptDirectory.from_config(database._configuration()).get_revision("0010").module
    request = ProbesIn(dataset="a/b", **asked)
    kept = {**request.model_dump(exclude={"captions"}), "captions": None}
    assert migration.marked(kept) == list(probes._marks(request))


@pytest.mark.long
def test_the_usual_probes_of_an_old_record_are_marked_and_no_others(before):
    _move(before, "0009")
    rows = _rows(before, "runs")
    of_probes = [row for row in rows if row["kind"] == "probes"]
    usual, other = of_probes[0], next(row for row in rows if row["kind"] == "evaluation")
    with before.begin() as connection:
        for row in (usual, other):
            text = {"request": "{}", "id": row["id"]}
            connection.execute(sa.text("UPDATE runs SET request = :request WHERE id = :id"), text)
    _move(before, "head")
    marks = [row for row in _rows(before, "labels") if row["value"] == "usual"]
    assert {row["run_id"] for row in marks} == {usual["id"]}
    assert {row["name"] for row in marks} == {
        *("probed bleu", "probed rouge_l", "probed cider_d", "probed meteor")
    }
    assert {row["created_at"] for row in marks} == {usual["created_at"]}
