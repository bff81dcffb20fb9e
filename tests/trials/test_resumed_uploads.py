"""Uploads that go on (T12, T15): cut at random places, the API killed meanwhile, clients of
others, a disk that is full.
"""

import contextlib
import itertools
import os
import random
import re
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import prescore
from helpers import outside
from helpers.fleet import (
    ROOT,
    Fleet,
    Served,
    digest,
    tus_creation,
    tus_part,
    until,
    write_large_checkpoint,
)
from helpers.networks import Network
from prescore.http import resumable_uploads, retries
from service.engine.blobs import open_blobs

SEEDS = itertools.count(5000)
GUIDE = ROOT / "deploy" / "guide" / "uploads.md"
PATIENCE = 120.0  # seconds without a byte: an API that was killed is back after two


class CuttingNetwork(Network):
    """Cuts so many connections, each after a number of bytes between two bounds."""

    def __init__(self, port: int, count: int, least: int, most: int, seed: int) -> None:
        self._left = count
        self._random = random.Random(seed)
        self._bounds = least, most
        super().__init__(port)

    def _lead(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._to)
        except OSError:  # the service is being started
            near.close()
            return
        self._start(self._both, near, far)

    def _both(self, near: socket.socket, far: socket.socket) -> None:
        """Both ends are closed when they have ended: there are thousands of connections."""
        with near, far:
            answering = threading.Thread(target=self._answer, args=(far, near))
            answering.start()
            self._ask(near, far)
            answering.join()

    def _ask(self, near: socket.socket, far: socket.socket) -> None:
        rest = self._random.randint(*self._bounds) if self._left > 0 else None
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                if rest is not None and len(data) > rest:
                    far.sendall(data[:rest])
                    self._left -= 1
                    break
                far.sendall(data)
                rest = None if rest is None else rest - len(data)
        self._end(near, far)


def _is_stored(fleet: Served, path) -> bool:
    content = path.read_bytes()
    place = f"{fleet.url}/v1/checkpoints/{digest(content)}"
    found = httpx.get(place, timeout=60).json()
    return found["bytes"] == len(content)


def _kill_api(fleet):
    """As if it had crashed: nothing is written down. Its supervisor starts another."""
    api = fleet.find("api")
    api.kill()
    until(lambda: {each.pid for each in fleet.running("api")} - {api.pid}, 30, "another API")

    def answers():
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{fleet.url}/livez", timeout=5).is_success

    until(answers, 30, "an API that answers")


def _begin(fleet, content):
    begin = tus_creation(len(content), kind="checkpoint", digest=digest(content))
    answer = httpx.post(f"{fleet.url}/v1/uploads", headers=begin)
    return fleet.url + answer.headers["Location"]


def _by_client(port, path):
    with prescore.Client(f"http://127.0.0.1:{port}", patience=PATIENCE) as client:
        client.upload_checkpoint(path)


def _by_curl(port, path):
    """The loop of the guide, as it stands there."""
    page = GUIDE.read_text(encoding="utf-8").partition("## With curl")[2].partition("\n## ")[0]
    lines = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    loop = re.sub(r"^FILE=.*$", 'FILE="$1"', "\n".join(lines), flags=re.MULTILINE)
    assert 'FILE="$1"' in loop
    environment = {**os.environ, "URL": f"http://127.0.0.1:{port}"}
    command = ["sh", "-c", loop, "sh", str(path)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=900)


@pytest.mark.parametrize(
    ("count", "megabytes", "kills"),
    [(3, 4, 1), pytest.param(50, 200, 3, marks=pytest.mark.slow)],
)
def test_many_uploads_at_once_are_cut_and_the_api_is_killed(
    fleet, tmp_path, monkeypatch, count, megabytes, kills
):
    """T12: every byte right; memory of the API flat. Clients: ours, and curl where it is; tuspy:
    tests/service/http/test_tus.py.
    """
    monkeypatch.setattr(resumable_uploads, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.1)
    ways = [_by_client, _by_curl] if shutil.which("curl") else [_by_client]
    files = [write_large_checkpoint(tmp_path, megabytes, next(SEEDS)) for _ in range(count)]
    size = files[0].stat().st_size
    memory = []

    def weigh():
        for api in fleet.running("api"):
            with contextlib.suppress(Exception):
                memory.append(api.memory_info().rss)

    ended = threading.Event()
    with (
        CuttingNetwork(fleet.port, 2 * count, size // 20, size // 2, seed=7) as network,
        ThreadPoolExecutor(count + 1) as pool,
    ):
        port = int(network.url.rpartition(":")[2])
        weighing = pool.submit(_each, weigh, ended)
        try:
            sent = [
                pool.submit(way, port, path)
                for way, path in zip(itertools.cycle(ways), files, strict=False)
            ]
            for killed in range(1, kills + 1):
                part = killed / (kills + 2)
                until(lambda at=part: _arrived(fleet, files, sent) > at, 900, "bytes")
                _kill_api(fleet)
            for each in sent:
                each.result()
        finally:
            ended.set()
            weighing.result()
    assert all(_is_stored(fleet, path) for path in files)
    assert not list(fleet.home.glob("*/uploads/*"))
    most = max(memory)
    print(f"T12 {count} x {size >> 20} MB, {kills} kills: API {most >> 20} MB at most")
    assert most < 300_000_000


@pytest.mark.slow
@pytest.mark.parametrize(("count", "megabytes", "kills"), [(12, 100, 3)])
def test_parts_go_to_the_store_while_it_is_cut_off_and_the_api_is_killed(
    s3_server, tmp_path, monkeypatch, count, megabytes, kills
):
    """T12 with parts that clients send to the store: every byte right, and nothing left there."""
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.1)
    files = [write_large_checkpoint(tmp_path, megabytes, next(SEEDS)) for _ in range(count)]
    url, environment = outside.new_bucket(s3_server)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    names, size = [digest(path.read_bytes()) for path in files], files[0].stat().st_size
    bounds = 4 << 20, 24 << 20
    memory = []
    with (
        CuttingNetwork(int(s3_server.rpartition(":")[2]), 2 * count, *bounds, seed=8) as network,
        Fleet(
            tmp_path / "home", PRESCORE_BLOB_URL=url, PRESCORE_BLOB_PUBLIC_URL=network.url
        ) as fleet,
        ThreadPoolExecutor(count) as pool,
    ):
        sent = [pool.submit(_by_client, fleet.port, path) for path in files]
        for killed in range(1, kills + 1):
            part = killed / (kills + 2)
            until(lambda at=part: _at_the_store(fleet, names, size) > at, 900, "parts")
            memory += [api.memory_info().rss for api in fleet.running("api")]
            _kill_api(fleet)
        for each in sent:
            each.result()
        memory += [api.memory_info().rss for api in fleet.running("api")]
        assert all(_is_stored(fleet, path) for path in files)
        assert not fleet.leftovers()
        staging = open_blobs(url, tmp_path / "copies", s3_server).staging
        assert list(staging.old(float("inf"))) == []
    print(
        f"T12 {count} x {megabytes} MB in parts, {kills} kills: API {max(memory) >> 20} MB at most"
    )


def _at_the_store(fleet, names, size) -> float:
    """The part of all bytes that the service knows to be in the store, or has as objects."""
    with contextlib.suppress(httpx.TransportError):
        going = httpx.get(f"{fleet.url}/v1/uploads", timeout=30).json()["items"]
        ended = sum(bool(fleet.blob_files(name)) for name in names)
        return (sum(each["staged"] for each in going) / size + ended) / len(names)
    return 0.0


def _each(task, ended):
    while not ended.wait(0.2):
        task()


def _arrived(fleet, files, sent) -> float:
    """The part of all bytes that is there; raises what a client has raised."""
    for each in sent:
        if each.done():
            each.result()
    sizes = {path.stat().st_size for path in files}
    there = 0
    for file in fleet.home.glob("*/*/**/*"):
        with contextlib.suppress(FileNotFoundError):
            size = file.stat().st_size
            if file.suffix == ".resumed" or size in sizes:
                there += size
    return there / sum(path.stat().st_size for path in files)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    made = subprocess.run(mounted, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system of its own: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_an_upload_goes_on_when_the_disk_has_room_again(serve_here, tmp_path, small_disk):
    """T15: 507 with what is there kept, and no restart."""
    content = write_large_checkpoint(tmp_path, 8, next(SEEDS)).read_bytes()
    with serve_here(tmp_path / "home", blob_url=f"file://{small_disk}") as service:
        url = _begin(service, content)
        full = httpx.patch(url, content=content, headers=tus_part(0))
        assert (full.status_code, full.json()["code"]) == (507, "disk_full")
        offset = int(httpx.head(url).headers["Upload-Offset"])
        assert 1_000_000 < offset <= 4 << 20
        enlarged = ["mount", "-o", "remount,size=40m", str(small_disk)]
        subprocess.run(enlarged, check=True)
        answer = httpx.patch(url, content=content[offset:], headers=tus_part(offset), timeout=60)
        assert answer.status_code == 204
        assert answer.headers["Content-Location"] == f"/v1/checkpoints/{digest(content)}"
