"""T67: a backup that is taken while processes die has all that was acknowledged before. Its short
form: test_storm.py.
"""

import os
import signal
import subprocess
import sys
from random import Random

import pytest

from helpers import outside
from helpers.backup_files import backup_of
from helpers.fleet import ROOT, Fleet, checkpoint, until_ended, upload
from helpers.storms import blow, golden_scores
from service.contract.errors import InvalidSetting
from service.operate import home as homes

SECONDS, RUNS, BACKUPS = 60, 40, 4  # of a storm


def _prescore(*words, **environment):
    command = [sys.executable, "-m", "service", *map(str, words)]
    options = {"cwd": ROOT, "env": {**os.environ, **environment}, "capture_output": True}
    done = subprocess.run(command, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_backups_of_a_storm_are_whole_wherever_they_are_restored(tmp_path, serve_here, s3_server):
    """Into an empty home, and into PostgreSQL and S3: what ended has its scores, the rest ends."""
    taken = []

    def back_up(submitted):
        if len(submitted) >= (len(taken) + 1) * RUNS // BACKUPS:
            file = tmp_path / f"{len(taken)}.tar"
            taken.append((file, dict(submitted)))
            print(_prescore("backup", file, "--home", tmp_path / "home"))

    with Fleet(tmp_path / "home") as fleet:
        fleet.add_dataset()
        with fleet.client() as client:
            identities = [upload(client, checkpoint(seed=at)) for at in range(RUNS)]
        golden = golden_scores(serve_here, tmp_path, identities)
        blow(fleet, identities, SECONDS, Random(SECONDS), back_up)
    assert len(taken) == BACKUPS
    for file, acknowledged in taken:
        _prescore("restore", file, "--home", tmp_path / file.stem)
        _has_all(Fleet(tmp_path / file.stem), acknowledged, golden)
    with outside.or_skip(outside.parts(s3_server)) as environment:
        file, acknowledged = taken[0]
        _prescore("restore", file, "--home", tmp_path / "fleet", **environment)
        _has_all(Fleet(tmp_path / "fleet", **environment), acknowledged, golden)


def _has_all(fleet, acknowledged, golden):
    with fleet, fleet.client() as client:
        for number, identity in acknowledged.items():
            found = until_ended(client, identity, 60)
            assert found["status"] == "succeeded", found
            assert found["scores"] == golden[number]


@pytest.mark.slow
def test_restorations_that_are_killed_anywhere_are_begun_again(tmp_path, serve_here):
    with serve_here(tmp_path / "home") as service, service.client() as client:
        service.add_dataset()
        identity = upload(client, checkpoint(seed=0))
        request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": []}
        answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=30"}).json()
    backup_of(tmp_path / "home", tmp_path / "b.tar")
    command = [sys.executable, "-m", "service", "restore", tmp_path / "b.tar", "--home"]
    rng, home, killed = Random(1), tmp_path / "again", 0
    for _ in range(20):
        with subprocess.Popen([*command, home], cwd=ROOT, stderr=subprocess.PIPE) as process:
            try:
                process.wait(rng.uniform(1, 3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
                continue
            assert process.returncode == 0, process.stderr.read()
            break
    print("killed", killed, "times")
    if (home / "restoring").exists():
        with pytest.raises(InvalidSetting), homes.hold_home(home):
            pass
        _prescore("restore", tmp_path / "b.tar", "--home", home)
    with serve_here(home) as service, service.client() as client:
        assert client.get(f"/v1/evaluations/{answer['id']}").json() == answer
