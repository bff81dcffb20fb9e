"""T27, T67: processes die while evaluations run; every one ends, with the right scores."""

import random

import pytest
import sqlalchemy as sa

from helpers.backup_files import backup_of
from helpers.fleet import Fleet, checkpoint, digest, until, until_ended, upload
from helpers.storms import VICTIMS, Pieces, answers, blow, golden_scores, post
from service.access import keys
from service.contract.askers import Scope
from service.contract.settings import Settings
from service.engine.tables import runs, task_rows
from service.operate.backups import creation, restoration

SECONDS, RUNS, UPLOADS = 60, 60, 12  # of a storm


def test_each_process_is_killed_once_and_nothing_is_lost(fleet, serve_here, tmp_path):
    """Neither there nor in a backup that is taken meanwhile."""
    with fleet.client() as client:
        identities = [upload(client, checkpoint(seed=at)) for at in range(len(VICTIMS))]
    golden = golden_scores(serve_here, tmp_path, identities)
    submitted = []
    for number, (word, identity) in enumerate(zip(VICTIMS, identities, strict=True)):
        submitted.append(post(fleet, identity, number))
        if fleet.embedded or word != "redis-server":  # another Redis is not ours to kill
            fleet.find(word).kill()
    if fleet.embedded:
        backup_of(fleet.home, tmp_path / "b.tar")
    until(lambda: answers(fleet), 20, "the API")
    with fleet.client() as client:
        for number, identity in enumerate(submitted):
            found = until_ended(client, identity, 40)
            assert found["status"] == "succeeded", found
            assert found["scores"] == golden[number]
    until(lambda: not fleet.leftovers(), 20, "the janitor, which sweeps what the dead have left")
    if fleet.embedded:
        again = Settings(home=tmp_path / "again")
        restoration.restore_backup(tmp_path / "b.tar", again, creation.report_nothing)
        with serve_here(again.home) as service, service.client() as client:
            service._turns.flush(service.records)  # as the janitor does
            for number, identity in enumerate(submitted):
                assert until_ended(client, identity, 30)["scores"] == golden[number]


@pytest.mark.slow
@pytest.mark.parametrize("with_key", [False, True], ids=["open", "with keys"])
def test_a_storm_of_kills_loses_nothing(tmp_path, serve_here, with_key):
    """Uploads come in pieces meanwhile, each of whose bytes is there at the end."""
    rng = random.Random(SECONDS)
    files = [checkpoint(seed=1000 + number) for number in range(UPLOADS)]
    with Fleet(tmp_path / "home") as fleet:
        pieces = Pieces(fleet, files)
        if with_key:
            _, fleet.key = keys.create_key(fleet.records, "red", Scope.ADMIN)
        fleet.add_dataset()
        with fleet.client() as client:
            identities = [upload(client, checkpoint(seed=at)) for at in range(RUNS)]
        golden = golden_scores(serve_here, tmp_path, identities)
        submitted = blow(fleet, identities, SECONDS, rng, pieces.step)
        during = len(pieces.stored)
        _all_ended(fleet, RUNS)
        until(lambda: answers(fleet), 20, "the API, which may have been the last to be killed")
        until(lambda: not pieces.step(), 60, "the last upload")
        assert pieces.stored == [digest(data) for data in files]
        for name, data in zip(pieces.stored, files, strict=True):
            assert [path.read_bytes() for path in fleet.blob_files(name)] == [data]
        print(f"T27: {during} of {len(files)} uploads were complete when the storm ended")
        with fleet.client() as client:
            for number, identity in submitted.items():
                found = client.get(f"/v1/evaluations/{identity}").json()
                assert found["status"] == "succeeded", found
                assert found["scores"] == golden[number]
        _nothing_leaked(fleet)


def _all_ended(fleet, count):
    def ended():
        with fleet.records.reading() as connection:
            query = sa.select(sa.func.count()).where(runs.c.finished_at.is_not(None))
            return connection.execute(query).scalar_one() == count

    until(ended, 60, "the end of every evaluation")


def _nothing_leaked(fleet):
    with fleet.records.reading() as connection:
        statuses = set(connection.execute(sa.select(task_rows.c.status)).scalars())
        leases = set(connection.execute(sa.select(task_rows.c.lease_until)).scalars())
    assert statuses == {"done"}
    assert leases == {None}
    until(lambda: not fleet.leftovers(), 20, "the janitor, which sweeps what the dead have left")
