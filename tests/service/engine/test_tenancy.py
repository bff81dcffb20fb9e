"""A connection sees and changes the rows of the team that its record is bound to, whatever a
statement asks for; the engine sees all rows.
"""

import ast
import gc
import weakref
from pathlib import Path

import pytest
import sqlalchemy as sa

from helpers import stored_records
from service.engine import tenancy
from service.engine.records import Records
from service.engine.tables import metadata
from service.engine.tenancy import UnrestrictedStatement

ROOT = Path(__file__).resolve().parents[3]
_PLAIN = sa.MetaData()
THINGS = sa.Table("things", _PLAIN, sa.Column("name", sa.Text), sa.Column("team", sa.Text))
MARKS = sa.Table("marks", _PLAIN, sa.Column("thing", sa.Text), sa.Column("mark", sa.Text))


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """Two things of each team, and a mark on each thing, which has no team."""
    made = Records(stored_records.open_empty_record(tmp_path))
    _PLAIN.create_all(made.engine)
    for team in ("red", "blue"):
        with made.of(team).transaction() as connection:
            for number in (1, 2):
                name = f"{team} {number}"
                own = {"name": name, "team": tenancy.find_owner(connection)}
                connection.execute(sa.insert(THINGS).values(own))
                connection.execute(MARKS.insert().values(thing=name, mark=str(number)))
    with made.transaction() as connection:
        assert tenancy.find_owner(connection) == "local"
    return made


def _names(records: Records, query: sa.sql.expression.Executable) -> list[str]:
    with records.reading() as connection:
        return sorted(connection.execute(query).scalars())


_SOME = sa.select(THINGS.c.name)
_OTHER = THINGS.alias()
_QUERIES = {
    "all": _SOME,
    "one by one": _SOME.where(sa.or_(THINGS.c.name == "red 1", sa.true())),
    "an alias": sa.select(_OTHER.c.name),
    "joined": sa.select(MARKS.c.thing).join(THINGS, THINGS.c.name == MARKS.c.thing),
    "joined to itself": sa.select(_OTHER.c.name).join(THINGS, THINGS.c.name == _OTHER.c.name),
    "within": sa.select(MARKS.c.thing).where(MARKS.c.thing.in_(_SOME)),
    "there": sa.select(MARKS.c.thing).where(sa.exists().where(THINGS.c.name == MARKS.c.thing)),
    "from a query": sa.select(_SOME.subquery().c.name),
    "from a named query": sa.select(_SOME.cte().c.name),
    "united": sa.union(_SOME, _SOME.where(THINGS.c.name.like("%1"))),
    "grouped": _SOME.group_by(THINGS.c.name).having(sa.func.count() > 0),
    "limited": _SOME.order_by(THINGS.c.name).limit(9),
}


@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES)
def test_every_form_of_query_sees_the_rows_of_its_team_alone(
    records: Records, query: sa.Select[tuple[str]]
) -> None:
    red = records.of("red")
    assert _names(red, query) == ["red 1", "red 2"]
    assert _names(red, query) == ["red 1", "red 2"]  # what was restricted before, too
    assert _names(records.of("blue"), query) == ["blue 1", "blue 2"]
    assert _names(records, query) == ["blue 1", "blue 2", "red 1", "red 2"]


def test_a_scalar_of_another_teams_row_is_null(records: Records) -> None:
    of = sa.select(THINGS.c.name).where(THINGS.c.name == MARKS.c.thing).scalar_subquery()
    with records.of("red").reading() as connection:
        found = {each for (each,) in connection.execute(sa.select(of).select_from(MARKS))}
    assert found == {"red 1", "red 2", None}


def test_only_own_rows_are_changed_and_deleted(records: Records) -> None:
    with records.of("red").transaction() as connection:
        changed = connection.execute(THINGS.update().values(name="mine")).rowcount
        stolen = THINGS.update().where(THINGS.c.name == "blue 1").values(team="red")
        assert (changed, connection.execute(stolen).rowcount) == (2, 0)
        gone = connection.execute(THINGS.delete().returning(THINGS.c.name)).scalars().all()
    assert gone == ["mine", "mine"]
    assert _names(records, _SOME) == ["blue 1", "blue 2"]


def test_a_new_row_says_whose_it_is(records: Records) -> None:
    with records.of("red").transaction() as connection:
        with pytest.raises(UnrestrictedStatement):
            connection.execute(THINGS.insert().values(name="nobody's"))
        with pytest.raises(UnrestrictedStatement):
            connection.execute(THINGS.insert(), [{"name": "nobody's"}])
        connection.execute(THINGS.insert(), [{"name": "red 3", "team": "red"}])


@pytest.mark.parametrize(
    "statement",
    [
        sa.text("SELECT name FROM things"),
        sa.select(MARKS.c.thing).outerjoin(THINGS, THINGS.c.name == MARKS.c.thing),
        sa.select(MARKS.c.thing).select_from(
            sa.outerjoin(MARKS, THINGS, THINGS.c.name == MARKS.c.thing)
        ),
    ],
    ids=["text", "an outer join", "from an outer join"],
)
def test_what_cannot_be_restricted_is_refused(
    records: Records, statement: sa.sql.expression.Executable
) -> None:
    with records.of("red").reading() as connection, pytest.raises(UnrestrictedStatement):
        connection.execute(statement)


def test_a_function_for_all_teams_sees_them_until_it_returns(records: Records) -> None:
    @tenancy.for_all_teams
    def every(connection: sa.Connection) -> int:
        return len(connection.execute(_SOME).all())

    @tenancy.for_all_teams
    def failing(connection: sa.Connection) -> None:
        raise ValueError(len(connection.execute(_SOME).all()))

    with records.of("red").reading() as connection:
        assert every(connection) == 4
        with pytest.raises(ValueError, match="4"):
            failing(connection)
        assert len(connection.execute(_SOME).all()) == 2


def test_few_statements_are_kept(records: Records) -> None:
    """Each request makes new ones, and a service lives for months."""
    made = []
    with records.of("red").reading() as connection:
        for number in range(700):
            query = sa.select(MARKS.c.thing).where(MARKS.c.thing.in_(_SOME.limit(number)))
            connection.execute(query).all()
            made.append(weakref.ref(query))
    gc.collect()
    assert sum(one() is not None for one in made) <= 501


# What teams share, or what is found by a key of a table that belongs to a team.
_SHARED = {
    *("plugins", "thumbnails", "tasks", "turns", "summaries", "task_needs"),
    *("attempts", "outbox", "draws", "past_attempts", "loose_tasks", "deleted_objects", "moments"),
    *("untold", "run_tasks", "run_names", "scores", "labels", "events", "idempotency"),
    "oidc_tokens",
}


def test_every_table_belongs_to_teams_or_is_known_to_be_shared() -> None:
    without = {name for name, table in metadata.tables.items() if "team" not in table.c}
    assert without == _SHARED


def _calls(*names: str) -> list[dict[str, int]]:
    """How often each of our modules names each of these functions."""
    found: list[dict[str, int]] = [{} for _ in names]
    for path in (ROOT / "service").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "tenancy.py" or not any(name in text for name in names):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        for name, places in zip(names, found, strict=True):
            many = sum(name in (getattr(at, "id", ""), getattr(at, "attr", "")) for at in nodes)
            if many:
                places[str(path.relative_to(ROOT / "service"))] = many
    return found


def test_few_places_look_across_teams() -> None:
    """Each of them was thought about: of what it finds, nothing leaves it but a flag."""
    across, within = _calls("for_all_teams", "of_all")
    assert across == {
        "engine/history.py": 2,  # tells all runs of a task that it has changed
        "engine/task_expiry.py": 1,  # cancels tasks that no run needs, of any team
        "retention/run_deletion.py": 1,
        "retention/upload_deletion.py": 1,  # who else has sent a file
    }
    assert {name: many for name, many in within.items() if not name.startswith("contract/")} == {
        "engine/records.py": 1,
        "access/oidc/exchange.py": 1,  # the team follows from the token
        "http/dependencies.py": 1,  # whether a request's key is valid still
        "http/routers/keys.py": 1,  # whether a key is valid
    }


_ENGINES = "telemetry.py"  # its numbers are of all teams, by the engine's connection


@pytest.mark.parametrize("room", ["access", "http", "retention", "runs", "stored", "webhooks"])
def test_no_statement_is_written_as_text(room: str) -> None:
    for path in (ROOT / "service" / room).rglob("*.py"):
        if path.name != _ENGINES:
            text = path.read_text(encoding="utf-8")
            assert "sa.text(" not in text, path
            assert "exec_driver_sql" not in text, path
