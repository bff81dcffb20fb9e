"""T67: backups, made beside a service and restored: nothing that was there is missing or other."""

import time
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from helpers import command_app, outside, stored_records
from helpers.backup_files import backup_of, objects_of, rows_of, sqlite_at
from helpers.fleet import until_ended
from helpers.full_disks import no_room
from service.contract.errors import InvalidBackup, InvalidSetting
from service.contract.settings import Settings
from service.engine import database, fleet_status
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.tables import attempts, runs, task_rows
from service.engine.tables import checkpoints as rows
from service.operate import home as homes
from service.operate.backups import creation, restoration
from service.stored import checkpoints


@contextmanager
def _record(home):
    """A transaction in the record of a home."""
    engine = database.open_database(sqlite_at(home))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def _restore(file, home, **urls):
    return restoration.restore_backup(file, Settings(home=home, **urls), creation.report_nothing)


@pytest.mark.long
def test_what_was_answered_is_answered_again_and_what_waited_is_done(kept, serve_here, tmp_path):
    restored = _restore(kept.file, tmp_path / "again")
    elapsed = time.time() - restored.head.made_at
    then, now = (_deadlines(at) for at in (kept.home, tmp_path / "again"))
    moved = {key: now[key] - then[key] for key in then}
    assert all(moved[identity] == 0 for identity in kept.ended)
    assert moved.pop(kept.waiting) == pytest.approx(elapsed, abs=2)  # as long as it had left
    with serve_here(tmp_path / "again") as service, service.client() as client:
        for identity in kept.ended:
            assert client.get(f"/v1/evaluations/{identity}").json() == kept.answers[identity]
        assert client.get(f"/v1/evaluations/{kept.waiting}").json()["status"] == "queued"
        service._turns.flush(service.records)  # as the janitor does
        found = until_ended(client, kept.waiting, 20)
        assert found["status"] == "succeeded"
        assert found["scores"].keys() == kept.answers[kept.ended[0]]["scores"].keys()


@pytest.mark.processes
def test_a_backup_goes_from_sqlite_and_files_to_postgresql_and_s3_and_back(kept, bucket, tmp_path):
    with outside.or_skip(outside.postgres_database()) as record:
        _restore(kept.file, tmp_path / "fleet", database_url=record, blob_url=bucket)
        assert _still(record) == _still(sqlite_at(kept.home))
        assert objects_of(tmp_path / "fleet", bucket) == objects_of(kept.home)
        _counts_on(record)
        backup_of(tmp_path / "fleet", tmp_path / "fleet.tar", url=record, blob_url=bucket)
        _restore(tmp_path / "fleet.tar", tmp_path / "back")
        back = _still(sqlite_at(tmp_path / "back"))
    back["attempts"] = [row for row in back["attempts"] if row["task_key"] != "new"]
    assert back == _still(sqlite_at(kept.home))
    assert objects_of(tmp_path / "back") == objects_of(kept.home)


def _counts_on(url):
    """A new row has a number that no other row has."""
    engine = database.open_database(url)
    with engine.begin() as connection:
        last = connection.execute(sa.select(sa.func.max(attempts.c.id))).scalar_one()
        new = {"task_key": "new", "attempt": 1, "worker": "w", "started_at": 0, "ended_at": 1}
        made = attempts.insert().values(**new).returning(attempts.c.id)
        assert connection.execute(made).scalar_one() == last + 1
    engine.dispose()


def _still(url):
    """All rows without what a restoration moves."""
    moved = {"deadline", "rung_at", "ready_at"}
    return {
        name: [{key: row[key] for key in row.keys() - moved} for row in found]
        for name, found in rows_of(url).items()
    }


def _deadlines(home):
    with _record(home) as connection:
        return dict(map(tuple, connection.execute(sa.select(runs.c.id, runs.c.deadline))))


def test_a_task_that_was_running_begins_anew(kept, tmp_path):
    """Its lease is nobody's: the late result of its attempt is refused."""
    _restore(kept.file, tmp_path / "one")
    with _record(tmp_path / "one") as connection:
        first = sa.select(task_rows.c.key).where(task_rows.c.status == "ready").limit(1)
        ready = connection.execute(first).scalar_one()
        running = {"status": "running", "lease": 7, "lease_until": 9e9, "worker": "w", "losses": 3}
        own = task_rows.c.key == ready
        connection.execute(task_rows.update().where(own).values(**running))
        begun = {"task_key": ready, "attempt": 1, "worker": "w", "started_at": 1.0}
        connection.execute(attempts.insert().values(**begun))
    backup_of(tmp_path / "one", tmp_path / "one.tar")
    _restore(tmp_path / "one.tar", tmp_path / "two")
    with _record(tmp_path / "two") as connection:
        row = connection.execute(sa.select(task_rows).where(own)).one()
        assert (row.status, row.lease, row.lease_until, row.losses) == ("ready", None, None, 0)
        outcome = sa.select(attempts.c.outcome).where(attempts.c.task_key == ready)
        assert connection.execute(outcome).scalars().all() == ["restored"]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"], indirect=True)
def test_a_backup_shows_one_moment_while_others_write(engine, tmp_path):
    """What is written after it has begun is not in it, in whatever table."""
    blobs = open_blobs(None, tmp_path / "store")
    before, after = blobs.put(b"before"), blobs.put(b"after")
    records = Records(engine)
    checkpoints.add(records, before, 1, {})

    def write(step, done, total):
        if step != "the record" or done:
            checkpoints.add(records, after, 1, {})

    made = creation.make_backup(records, blobs, tmp_path / "b.tar", write)
    assert made.rows["checkpoints"] == 1
    assert made.objects == 1
    with engine.connect() as connection:
        assert len(connection.execute(sa.select(rows)).all()) == 2
        at = fleet_status.read_moments(connection)[fleet_status.LAST_BACKUP]
        assert at == pytest.approx(time.time(), abs=60)
    _restore(tmp_path / "b.tar", tmp_path / "again")
    assert objects_of(tmp_path / "again") == {before: b"before"}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_is_deleted_meanwhile_is_not_missed_and_what_is_lost_is_told(engine, tmp_path):
    blobs = open_blobs(None, tmp_path / "store")
    digests = {name: blobs.put(name.encode()) for name in ("kept", "deleted", "lost", "spoiled")}
    for digest in digests.values():
        checkpoints.add(Records(engine), digest, 1, {})

    def vanish(step, done, total):
        if (step, done) == ("objects", 0):
            for name in ("deleted", "lost"):
                assert blobs.delete_old(digests[name], float("inf"))
            blobs._target(digests["spoiled"]).write_bytes(b"SPOILED")
            with engine.begin() as connection:
                connection.execute(rows.delete().where(rows.c.digest == digests["deleted"]))

    made = creation.make_backup(Records(engine), blobs, tmp_path / "b.tar", vanish)
    assert (made.lacking, made.damaged) == ([digests["lost"]], [digests["spoiled"]])
    assert _restore(tmp_path / "b.tar", tmp_path / "again").lacking == 2
    assert objects_of(tmp_path / "again") == {digests["kept"]: b"kept"}


def test_the_backup_of_an_older_version_is_migrated(kept, tmp_path, monkeypatch):
    last, _ = database.read_revisions(old := database.open_database(sqlite_at(kept.home)))
    old.dispose()
    stored_records.add_revision(tmp_path / "migrations", last, monkeypatch)
    _restore(kept.file, tmp_path / "again")
    engine = database.open_database(sqlite_at(tmp_path / "again"))
    database.check_revision(engine)
    engine.dispose()
    there, here = (rows_of(sqlite_at(home)) for home in (kept.home, tmp_path / "again"))
    assert len(here["runs"]) == len(there["runs"]) > 0
    assert here["scores"] == there["scores"] != []


def test_a_backup_of_a_later_version_is_refused_with_that_version(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "is_known_revision", lambda revision: False)
    with pytest.raises(InvalidBackup, match=r"made by Prescore 0\.1\.0, whose record .* is later"):
        _restore(kept.file, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_home_with_anything_in_it_is_refused_and_left_alone(kept, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match=r"expected an empty folder, found 'notes.txt'"):
        _restore(kept.file, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "lock"}


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_database_with_a_row_is_refused_and_empty_tables_are_not(engine, kept, tmp_path):
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    fleet_status.note_moment(Records(engine), "x", 1.0)
    with pytest.raises(InvalidSetting, match=r"not empty \(there are rows in moments\)"):
        _restore(kept.file, tmp_path / "again", database_url=url)
    assert not (tmp_path / "again").exists()
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM moments"))
    _restore(kept.file, tmp_path / "again", database_url=url)
    assert rows_of(url)["scores"] == rows_of(sqlite_at(kept.home))["scores"]


def test_a_store_with_objects_of_another_service_is_refused(kept, tmp_path):
    other = open_blobs(f"file://{tmp_path / 'store'}", tmp_path).put(b"another's")
    with pytest.raises(InvalidSetting, match=f"not empty: it has {other}"):
        _restore(kept.file, tmp_path / "again", blob_url=f"file://{tmp_path / 'store'}")


@pytest.mark.parametrize("ended_in", ["_put", "_record"])
def test_a_restoration_that_is_ended_in_the_middle_is_begun_again(
    kept, tmp_path, monkeypatch, ended_in
):
    """Until then nothing starts there."""
    calls = iter(range(9))

    def end(*arguments):
        if ended_in == "_record" or next(calls) == 3:
            raise KeyboardInterrupt
        return really(*arguments)

    really = getattr(restoration, ended_in)
    with monkeypatch.context() as patched:
        patched.setattr(restoration, ended_in, end)
        with pytest.raises(KeyboardInterrupt):
            _restore(kept.file, tmp_path / "again")
    with (
        pytest.raises(InvalidSetting, match="ended here before it was whole"),
        homes.hold_home(tmp_path / "again"),
    ):
        pass
    _restore(kept.file, tmp_path / "again")
    with homes.hold_home(tmp_path / "again"):
        assert rows_of(sqlite_at(tmp_path / "again")).keys() == rows_of(sqlite_at(kept.home)).keys()
        assert objects_of(tmp_path / "again") == objects_of(kept.home)


# The commands


def _prescore(*words):
    return CliRunner().invoke(command_app.prescore(), [*map(str, words)])


def test_the_commands_say_what_they_did_and_what_a_backup_lacks(kept, tmp_path):
    made = _prescore("backup", tmp_path / "b.tar", "--home", kept.home)
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.startswith(f"{tmp_path / 'b.tar'}: 4 runs, ")
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600
    whole = _prescore("restore", tmp_path / "b.tar", "--check")
    assert ": is whole: the record of 20" in whole.stdout
    again = _prescore("restore", tmp_path / "b.tar", "--home", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    assert ": restored: the record of 20" in again.stdout
    lost = max(objects_of(tmp_path / "again"))
    open_blobs(None, tmp_path / "again").delete_old(lost, float("inf"))
    made = _prescore("backup", tmp_path / "lacking.tar", "--home", tmp_path / "again")
    assert made.exit_code == 1
    told = "lacks 1 objects that the record names, since they are missing or damaged: "
    assert f"{told}{lost}" in made.stderr
    checked = _prescore("restore", tmp_path / "lacking.tar", "--check")
    assert "1 objects were missing" in checked.stderr


def test_a_full_disk_is_told_and_nothing_is_left(kept, tmp_path):
    with no_room(20_000):
        made = _prescore("backup", tmp_path / "b.tar", "--home", kept.home)
    assert made.exit_code == 2
    assert made.stderr.startswith(f"disk_full: {tmp_path / 'b.tar'}: no space is left")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("backup", "{kept}", "--home", "{home}"), "there is such a file already"),
        (("backup", "{new}/none/b.tar", "--home", "{home}"), "expected a file that can be written"),
        (("backup", "{new}/b.tar", "--home", "{new}/none"), "there is no record"),
        (("restore", "{new}/none", "--home", "{new}/home"), "cannot be read (No such file"),
        (("restore", "{home}/record.sqlite", "--home", "{new}/home"), "has made, found another"),
    ],
)
def test_what_cannot_be_is_refused_with_a_line(kept, tmp_path, words, told):
    places = {"kept": kept.file, "home": kept.home, "new": tmp_path}
    found = _prescore(*(word.format(**places) for word in words))
    assert found.exit_code == 2
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing_and_what_a_killed_backup_left_is_written_over(kept, tmp_path):
    def interrupt(step, done, total):
        if step == "objects" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup_of(kept.home, tmp_path / "b.tar", interrupt)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".b.tar.partial").write_bytes(b"left" * 10_000_000)
    backup_of(kept.home, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").stat().st_size < 10_000_000
    assert restoration.check_backup(tmp_path / "b.tar").objects > 0
