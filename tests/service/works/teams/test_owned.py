"""A connection sees the rows of the team that its record is bound to; the engine sees all rows."""

from pathlib import Path

import sqlalchemy as sa

from helpers import empty_record
from service.contract.asking import Scope
from service.works.records import Records
from service.works.teams import owned

_THINGS = sa.table("things", sa.column("name"), sa.column("team"))


def test_each_team_sees_its_own_rows_and_the_engine_sees_all(tmp_path: Path) -> None:
    records = Records(empty_record.at(tmp_path))
    with records.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE things (name TEXT, team TEXT)")
    for team in ("red", "blue"):
        with records.of(team).transaction() as connection:
            own = {"name": f"of {team}", "team": owned.owner(connection)}
            connection.execute(sa.insert(_THINGS).values(own))

    assert _seen(records.of("red")) == ["of red"]
    assert _seen(records.of("blue")) == ["of blue"]
    assert sorted(_seen(records)) == ["of blue", "of red"]


def test_what_is_bound_to_no_team_adds_rows_of_the_team_local(tmp_path: Path) -> None:
    with Records(empty_record.at(tmp_path)).transaction() as connection:
        assert owned.owner(connection) == "local"


def test_each_scope_includes_those_before_it() -> None:
    assert Scope.PUBLISH.includes(Scope.READ)
    assert Scope.SUBMIT.includes(Scope.SUBMIT)
    assert not Scope.READ.includes(Scope.SUBMIT)


def _seen(records: Records) -> list[str]:
    with records.reading() as connection:
        query = sa.select(_THINGS.c.name).where(owned.own(connection, _THINGS))
        return list(connection.execute(query).scalars())
