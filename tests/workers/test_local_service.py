"""A service in the process of a program or a command: no server, no Redis, and nothing twice."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import sqlalchemy as sa

import prescore
from helpers.builders import ENCODER, model, tensors
from helpers.fleet import until
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.engine import database
from service.engine.tables import runs, task_rows
from workers import local_service
from workers.inference import checkpoints, features

IMAGES = [f"{at}.jpg" for at in range(6)]
SAID = [{"image": image, "caption": f"w{at} w2"} for at, image in enumerate(IMAGES)]
USUAL = {"tokenizer": "none", "postgen": ["bleu", "cider_d"]}
COMMAND = [sys.executable, "-m", "prescore_command"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset with features, and a checkpoint."""
    folder = tmp_path_factory.mktemp("files")
    items = [
        BundleItem(image, "test", (f"w{at} w3", "w2 w3 w4")) for at, image in enumerate(IMAGES)
    ]
    bundles.write_bundle_folder(folder / "data", items)
    rows = np.random.default_rng(0).normal(size=(len(IMAGES), 5))
    features.write_features(
        folder / "data" / bundles.FEATURES, IMAGES, rows.astype("float32"), ENCODER
    )
    checkpoints.write_checkpoint(
        folder / "model.safetensors", model("merge", "gru", tensors("merge", "gru"))
    )
    return folder


def _statuses(home, table):
    """Of the runs or the tasks in the record."""
    record = home / local_service.FOLDER / "record.sqlite"
    engine = database.open_database(f"sqlite:///{record}")
    try:
        with engine.connect() as connection:
            return connection.execute(sa.select(table.c.status)).scalars().all()
    except sa.exc.OperationalError:  # its tables are not there yet
        return []
    finally:
        engine.dispose()


def test_a_client_here_scores_as_a_service_does_and_the_next_one_computes_nothing(folder, tmp_path):
    found = []
    for _ in range(2):
        with prescore.Client(here=tmp_path) as client:
            client.add_dataset("tiny", folder / "data")
            run = client.submit("tiny/test", captions=SAID, **USUAL)
            found.append(client.wait(run.id))
    assert [run.status for run in found] == ["succeeded", "succeeded"]
    assert found[0].scores == found[1].scores
    assert found[0].scores["cider_d"].signature == "cider_d|refs:2|tok:none|df:corpus(n=6)|v:2"
    assert [{task.cached for task in run.tasks} for run in found] == [{False}, {True}]


def test_it_listens_nowhere_but_at_a_socket_of_its_user(tmp_path):
    before = psutil.Process().net_connections("tcp")
    with local_service.run_local_service(tmp_path) as path:
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert psutil.Process().net_connections("tcp") == before
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
    assert not path.exists()
    assert stat.S_IMODE((tmp_path / local_service.FOLDER).stat().st_mode) == 0o700


def test_two_clients_share_a_home(folder, tmp_path):
    with prescore.Client(here=tmp_path) as one, prescore.Client(here=tmp_path) as other:
        one.add_dataset("tiny", folder / "data")
        begun = [client.submit("tiny/test", captions=SAID, **USUAL) for client in (one, other)]
        ended = [other.wait(begun[0].id), one.wait(begun[1].id)]
    assert [run.status for run in ended] == ["succeeded", "succeeded"]


def _environment(home):
    """Of a command that works in this home."""
    modules = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    return {**os.environ, "PRESCORE_HOME": str(home), "PYTHONPATH": modules}


@pytest.fixture
def long_command(folder, tmp_path):
    """`prescore submit --here --wait` of a search that takes minutes, and its home."""
    arguments = ["model.safetensors", "--dataset", "tiny/test", "--bundle", "data", "--here"]
    search = ["--beam", "60", "--min-words", "900", "--max-words", "1000", "--tokenizer", "none"]
    command = [*COMMAND, "submit", *arguments, *search, "--wait"]
    environment = _environment(tmp_path)
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)
    record = tmp_path / local_service.FOLDER / "record.sqlite"
    until(record.exists, 60, "a record")
    until(lambda: "running" in _statuses(tmp_path, task_rows), 60, "a task that runs")
    yield process, tmp_path
    process.kill()
    process.communicate()


@pytest.mark.processes
def test_ctrl_c_cancels_the_run_and_ends_the_command(long_command):
    process, home = long_command
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.decode().endswith("stopped\n")
    assert time.monotonic() - began < 15
    assert _statuses(home, runs) == ["canceled"]


@pytest.mark.processes
def test_what_a_killed_command_left_is_canceled_by_the_next_one(long_command):
    process, home = long_command
    process.kill()
    process.wait()
    command = [*COMMAND, "list", "--here"]  # in a process where nothing was served before
    subprocess.run(command, env=_environment(home), check=True, capture_output=True)
    with prescore.Client(here=home) as client:
        (left,) = client.evaluations()
        assert left.status == "canceled"
        run = client.submit("tiny/test", captions=SAID, **USUAL)
        assert client.wait(run.id, timeout=60).status == "succeeded"


def test_without_the_other_distribution_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("prescore.client.local_service.entry_points", lambda group: [])
    with pytest.raises(prescore.InvalidArgument, match="pip install"):
        prescore.Client(here=True)
