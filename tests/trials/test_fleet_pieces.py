"""The fleet of deploy/compose.yaml, piece by piece, on a Redis with its access rules.

In containers the pieces reach Redis by TCP; here it listens at a socket of its own.
"""

import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import psutil
import pytest
import redis
import sqlalchemy as sa
from rq import Queue
from rq.serializers import JSONSerializer

from helpers import outside, postgresql_roles
from helpers.fleet import LONG, ROOT, bundle, checkpoint, until, until_ended, upload
from helpers.fleet_pieces import DEPLOY, SERVICES, STOP_SECONDS, Pieces
from helpers.redis_server import Server
from service.engine import database, task_queue
from service.engine.records import Records
from service.engine.tables import attempts
from service.engine.task_queue import RedisQueue
from workers.runtime.worker import QueueWorker

PIECES = ("api", "janitor", "worker")


def _password(file: Path) -> str:
    first, _ = file.read_text(encoding="utf-8").splitlines()
    return urlsplit(first.partition("=")[2]).password


class LimitedRedis(Server):
    """redis-server with the rules that secrets.sh writes, and one who may ask it anything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        subprocess.run(["sh", DEPLOY / "secrets.sh", folder], check=True)
        rules = (folder / "redis.acl").read_text(encoding="utf-8")
        (folder / "rules.acl").write_text(f"{rules}user tester on >tester ~* &* +@all\n")
        self.passwords = {piece: _password(folder / f"{piece}.env") for piece in PIECES}
        self._command += ["--aclfile", str(folder / "rules.acl")]

    @property
    def urls(self) -> dict[str, str]:
        """By the piece whose user it is."""
        named = self.passwords.items()
        return {piece: f"unix://{piece}:{password}@{self.socket}" for piece, password in named}

    @property
    def stranger(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    @property
    def tester(self) -> redis.Redis:
        return redis.Redis.from_url(f"unix://tester:tester@{self.socket}")

    def refused(self) -> list[str]:
        """The commands, keys and channels that the fleet asked for and may not have."""
        entries = self.tester.acl_log()
        return [entry["object"] for entry in entries if entry["username"] in PIECES]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    started = LimitedRedis(tmp_path_factory.mktemp("limited") / "rules")
    started.start()
    yield started
    started.kill()


@pytest.fixture
def limited(started):
    """Empty, and with nothing in its log."""
    started.tester.flushall()
    started.tester.acl_log_reset()
    return started


@pytest.fixture
def pieces(tmp_path, limited, engine):
    home = tmp_path / "home"
    home.mkdir()
    owner = engine.url.render_as_string(hide_password=False)
    with ExitStack() as stack:
        record = owner
        if engine.dialect.name == "postgresql":  # each piece has its role
            roles = stack.enter_context(postgresql_roles.made(engine))
            record = {"migrate": owner} | {name: roles[f"prescore_{name}"] for name in PIECES}
        pieces = Pieces(home, limited.urls, record)
        stack.callback(pieces.stop)
        yield pieces


def _submit(client, **more):
    assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code in (200, 201)
    request = {"checkpoint": upload(client, checkpoint(seed=700)), "dataset": "tiny/test", **more}
    return client.post("/v1/evaluations", json=request).json()["id"]


def _get(client, identity):
    return client.get(f"/v1/evaluations/{identity}").json()


def _tasks(client, identity):
    return {task["status"] for task in _get(client, identity)["tasks"]}


@pytest.mark.parametrize(
    ("engine", "metrics"),
    [
        ("sqlite", {"cider_d", "rouge_l"}),
        ("postgresql", {"bleu", "cider_d", "meteor"}),
    ],
    indirect=["engine"],
)
@pytest.mark.slow  # seven processes; the rules alone: below, the commands: test_deploy.py
def test_the_pieces_finish_an_evaluation_with_the_rights_they_have(pieces, limited, metrics):
    """And end in time while one of them works and somebody listens to another."""
    pieces.start_api()
    for name in ("janitor", "inference", "metrics"):
        pieces.start(name)
    ours = Queue("metrics", connection=limited.tester, serializer=JSONSerializer)
    ours.enqueue("os.system", "true")
    with pieces.client() as client:
        first = _submit(client, postgen=sorted(metrics))

        def over() -> bool:
            assert limited.refused() == []
            return _get(client, first)["status"] in ("succeeded", "failed", "canceled")

        until(over, 60, "the evaluation's end")
        found = _get(client, first)
        assert found["status"] == "succeeded", found["error"]
        assert {"perplexity", *metrics - {"bleu"}} <= set(found["scores"])
        assert client.get("/metrics").is_success
        assert RedisQueue(limited.tester).foreign() == 1
        for process in pieces.family():
            line = " ".join(process.cmdline())
            assert not [each for each in limited.passwords.values() if each in line]

        second = _submit(client, pregen=[], postgen=["rouge_l"], decoding=LONG)
        until(lambda: "running" in _tasks(client, second), 30, "captions are being written")
        with client.stream("GET", f"/v1/evaluations/{second}/events"):
            pieces.stop()
    assert limited.refused() == []


@pytest.fixture
def far_apart(tmp_path, limited, s3_server):
    """Pieces on PostgreSQL and an S3-compatible store, and a folder for each of them."""
    url, variables = outside.new_bucket(s3_server)
    with outside.or_skip(outside.postgres_database()) as record:
        (tmp_path / "api").mkdir()
        settings = {"PRESCORE_BLOB_URL": url, **variables}
        pieces = Pieces(tmp_path / "api", limited.urls, record, **settings)
        pieces.record = record
        yield pieces
        pieces.stop()


def _scored(number: int) -> dict[str, object]:
    captions = [{"image": f"{at}.jpg", "caption": f"w{at} n{number}"} for at in range(40)]
    asked = {"postgen": ["bleu", "rouge_l"], "tokenizer": "none"}
    return {"captions": captions, "dataset": "tiny/test", **asked}


def _begun(records: Records, key: str) -> int:
    """How often a task was begun."""
    query = sa.select(sa.func.count()).where(attempts.c.task_key == key)
    with records.reading() as connection:
        return connection.execute(query).scalar_one()


def _leased_by(records: Records, name: str) -> str | None:
    """The task that a worker of this name has begun and not ended."""
    query = sa.select(attempts.c.task_key).where(
        attempts.c.worker.startswith(name), attempts.c.outcome.is_(None)
    )
    with records.reading() as connection:
        return connection.execute(query).scalar()


@pytest.mark.slow
def test_what_a_killed_worker_of_a_fleet_had_begun_is_begun_again_within_20_s(far_apart, tmp_path):
    """T22: where the worker is on a machine of its own, and while others wait; nobody starts it
    again.
    """
    far_apart.start_api()
    far_apart.start("janitor")
    workers = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        workers.append(far_apart.start("metrics", PRESCORE_HOME=str(tmp_path / name)))
    records = Records(database.open_database(far_apart.record))
    with far_apart.client() as client:
        assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
        first = client.post("/v1/evaluations", json=_scored(0)).json()["id"]
        assert until_ended(client, first, 60)["status"] == "succeeded"
        doomed = psutil.Process(workers[0].pid)
        (child,) = until(doomed.children, 30, "a warm child")
        child.suspend()
        posted = [
            client.post("/v1/evaluations", json=_scored(n)).json()["id"] for n in range(1, 41)
        ]
        name = f"metrics@{socket.gethostname()}:{doomed.pid}"
        key = until(lambda: _leased_by(records, name), 20, "a task of the worker")
        doomed.kill()
        killed = time.monotonic()
        until(lambda: not child.is_running() or child.status() == "zombie", 1, "the child's death")
        posted += [
            client.post("/v1/evaluations", json=_scored(n)).json()["id"] for n in range(41, 61)
        ]
        until(lambda: _begun(records, key) == 2, 20, "a second attempt")
        print(f"T22: begun again {time.monotonic() - killed:.1f} s after")
        for identity in posted:
            assert until_ended(client, identity, 60)["status"] == "succeeded"
    records.engine.dispose()


@pytest.mark.slow
def test_the_converter_starts_by_its_command_alone_and_its_health_check_tells_its_death(tmp_path):
    """With nothing in its environment, as its container has it."""
    service = SERVICES["converter"]
    mounted = service["volumes"][0].partition(":")[2]
    command = [word.replace(mounted, str(tmp_path)) for word in service["command"]]
    check = [word.replace(mounted, str(tmp_path)) for word in service["healthcheck"]["test"][2:]]

    def is_healthy():
        asked = [sys.executable, *check]
        return subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0

    assert not is_healthy()
    started = [sys.executable, "-m", "workers", *command]
    with subprocess.Popen(started, cwd=ROOT, env={}, stderr=subprocess.DEVNULL) as process:
        try:
            until(is_healthy, float(service["healthcheck"]["start_period"][:-1]), "its health")
            process.terminate()
            assert process.wait(STOP_SECONDS) == 0
        finally:
            process.kill()
    assert not is_healthy()


def test_a_worker_has_the_rights_to_announce_itself_and_to_forget_dead_ones(limited, engine):
    """And the janitor and the API those to send wake-ups, also those that are lost."""
    connection = task_queue.connect_redis(limited.urls["worker"])
    queues = RedisQueue(connection)
    runner = SimpleNamespace(name="metrics@here")
    worker = QueueWorker(runner, queues, "metrics", connection, beside=None)
    tester = limited.tester
    tester.sadd("rq:workers:metrics", "rq:worker:gone")
    worker.announce()
    assert tester.smembers("rq:workers:metrics") == {worker.key.encode()}
    worker.register_death()
    assert tester.smembers("rq:workers:metrics") == set()
    tester.set("rq:queue:metrics", "no queue")
    queues.drop_what_is_no_queue()
    queues.wake_all([("a" * 64, "metrics")])
    for piece in ("api", "janitor"):
        task_queue.check_eviction(
            own := task_queue.connect_redis(limited.urls[piece], name=f"{piece}@here")
        )
        sending = RedisQueue(own)
        sending.wake_all([("b" * 64, "metrics")])
        sending.ring_again(Records(engine), before=time.time())
        assert sending.waiting()["metrics"] == (2 if piece == "api" else 3)
    RedisQueue(task_queue.connect_redis(limited.urls["api"])).workers()
    RedisQueue(task_queue.connect_redis(limited.urls["api"])).foreign()
    queues.is_wake_up(b"a" * 64)
    queues.take_wake_up("metrics")
    assert limited.refused() == []


@pytest.mark.parametrize("piece", ["api", "janitor"])
@pytest.mark.parametrize(
    "command",
    [
        *("BLPOP rq:queue:metrics 1", "DEL rq:queue:metrics", "LREM rq:queue:metrics 0 a"),
        *(
            "HGETALL rq:job:a",
            "SET prescore:foreign 0",
            "SREM rq:workers a",
            "LRANGE rq:queue:a 0 1",
        ),
    ],
)
def test_who_sends_wake_ups_may_neither_take_nor_delete_them(limited, piece, command):
    with pytest.raises(redis.exceptions.NoPermissionError):
        redis.Redis.from_url(limited.urls[piece]).execute_command(*command.split())


@pytest.mark.parametrize(
    "command",
    [
        *("FLUSHALL", "KEYS *", "CONFIG SET dir /", "SHUTDOWN", "ACL LIST", "SCRIPT FLUSH"),
        *("SET other 1", "GET other", "EVAL return 0", "CLIENT KILL ID 1", "SUBSCRIBE other"),
    ],
)
def test_the_fleets_users_may_do_nothing_else(limited, command):
    users = [redis.Redis.from_url(url) for url in limited.urls.values()]
    for connection in (*users, limited.stranger):
        with pytest.raises(redis.exceptions.NoPermissionError):
            connection.execute_command(*command.split())


@pytest.mark.parametrize("piece", PIECES)
def test_without_its_password_nobody_is_a_fleets_user(limited, piece):
    wrong = limited.urls[piece].replace(limited.passwords[piece], limited.passwords["api"][::-1])
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis.from_url(wrong).ping()
