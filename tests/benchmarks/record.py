"""How fast the service answers from a record of many evaluations, and how large it is. Prints;
judges nothing.

    PYTHONPATH=. python tests/benchmarks/record.py                          SQLite and PostgreSQL
    PYTHONPATH=. python tests/benchmarks/record.py --sizes 1000 --on sqlite

Ten evaluations are made by the service, of 300 images and small models, and copied with other
checkpoints, scores and times (`tests/helpers/seeding.py`). The application answers a team's key in
a process of its own, as in a fleet; nothing computes meanwhile.
"""

import argparse
import contextlib
import gc
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

IMAGES, ASKED, MADE = 300, 31, 10
USUAL = {"postgen": ["bleu", "cider_d", "rouge_l"], "decoding": {"beam": 1, "max_words": 20}}
CAPTIONS = {
    "captions": [{"image": f"{at}.jpg", "caption": "w3 w4 w5"} for at in range(IMAGES)],
    "postgen": ["cider_d"],
}
GATED = {"gates": ["cider_d >= baseline - 0.01"]}
ON_SPLIT = {"dataset": "flickr/test", "tokenizer": "none"}
READ = {
    "leaderboard": "/v1/datasets/flickr/leaderboard?split=test",
    "leaderboard of a label": "/v1/datasets/flickr/leaderboard?split=test&label.branch=main",
    "history": "/v1/datasets/flickr/history?split=test",
    "correlations": "/v1/datasets/flickr/correlations?split=test",
    "list of 200": "/v1/evaluations?limit=200",
    "200 of a label": "/v1/evaluations?limit=200&label.branch=main",
    "200 of a status": "/v1/evaluations?limit=200&status=queued",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,20000", help="each a multiple of the one before")
    parser.add_argument("--on", choices=["sqlite", "postgresql"], nargs="*")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    for on in arguments.on or ["sqlite", "postgresql"]:
        with tempfile.TemporaryDirectory() as folder, _record(Path(folder), on) as url:
            _measure(on, Path(folder), url, sizes)


@contextlib.contextmanager
def _record(home: Path, on: str) -> Iterator[str]:
    from helpers import outside

    if on == "sqlite":
        yield f"sqlite:///{home / 'record.sqlite'}"
        return
    with outside.postgres_database() as url:
        yield url


def _measure(on: str, home: Path, url: str, sizes: list[int]) -> None:
    from helpers import seeding
    from service.access import keys
    from service.contract.askers import LOCAL, Scope
    from service.engine import database
    from service.engine.records import Records

    uploaded = _first_ones(home, url)
    engine = database.open_database(url)
    _, key = keys.create_key(Records(engine), LOCAL, Scope.ADMIN)
    filled = MADE
    for at, size in enumerate(sizes):
        seeding.multiply(Records(engine), size // filled, at=61 - 4 * at)
        filled = size
        print(f"\n{on}, {size} evaluations: ms: median, mean of CPU", flush=True)
        engine.dispose()
        with _served(home, url, key) as (client, process):
            for name, ask in _requests(client, uploaded):
                median, cpu = _measured(ask, process)
                print(f"  {name:24}{median:8.1f}{cpu:8.1f}", flush=True)
    engine.dispose()


def _first_ones(home: Path, url: str) -> str:
    """Make the evaluations that are copied; gives the digest of a checkpoint without any."""
    from helpers.fleet import bundle, checkpoint, until_ended, upload
    from helpers.service_here import service_here

    with service_here(home, url=url) as service, service.client() as client:
        client.timeout = 300
        assert client.put("/v1/datasets/flickr", content=bundle(IMAGES)).status_code == 201
        assert client.put("/v1/datasets/other", content=bundle(IMAGES, seed=1)).status_code == 201
        for number in range(MADE):
            branch = "dev" if number % 3 else "main"
            request = {
                **ON_SPLIT,
                **USUAL,
                "checkpoint": upload(client, checkpoint(number)),
                "labels": {"run": str(number % 4), "branch": branch, "step": str(number)},
            }
            if number == 1:
                request["dataset"] = "other/test"
            if number > 7:
                request |= {"gates": ["no_significant_drop(cider_d)"], "baseline": "branch=main"}
            answer = client.post("/v1/evaluations", json=request)
            assert until_ended(client, answer.json()["id"], 100)["status"] == "succeeded"
        return upload(client, checkpoint(100))


@contextlib.contextmanager
def _served(home: Path, url: str, key: str) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(home, url, listener)
        )
        process.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            own = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=address, headers=own, timeout=60) as client:
                yield client, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.join()


def _serve(home: Path, url: str, listener: socket.socket) -> None:
    """The application alone: no task is performed."""
    import uvicorn

    from service.contract.assets import AssetFolders
    from service.engine import database, logs
    from service.engine.blobs import open_blobs
    from service.engine.records import Records
    from service.engine.service_parts import ServiceParts
    from service.engine.task_queue import InProcessQueue
    from service.http.app import create_app
    from service.http.dependencies import AppParts

    logs.configure_logs("api", "warning")
    records = Records(database.open_database(url))
    parts = ServiceParts(
        records, open_blobs(None, home), InProcessQueue(lambda _: None), AssetFolders(home)
    )
    app = create_app(AppParts.on(parts))
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[listener])


def _requests(
    client: httpx.Client, uploaded: str
) -> Iterator[tuple[str, Callable[[int], httpx.Response]]]:
    latest = client.get("/v1/evaluations?limit=1").json()["items"][0]
    read = READ | {
        "an evaluation": f"/v1/evaluations/{latest['id']}",
        "its pre-gen scores": f"/v1/evaluations/{latest['id']}/pregen",
        "a checkpoint": f"/v1/checkpoints/{uploaded}",
    }
    later = client.get(READ["leaderboard"] + "&limit=1000").json()["next"]
    if later is not None:
        read["leaderboard, page 21"] = f"{READ['leaderboard']}&cursor={later}"
    for name, path in read.items():
        yield name, lambda _, path=path: client.get(path)
    for name, more in {
        "POST captions": CAPTIONS,
        "POST with a baseline": CAPTIONS | GATED | {"baseline": "branch=main"},
        "POST with best": CAPTIONS | GATED | {"baseline": "best"},
        "POST a checkpoint": USUAL | {"checkpoint": uploaded},
    }.items():
        yield name, _posting(client, ON_SPLIT | more)


def _posting(client: httpx.Client, request: dict) -> Callable[[int], httpx.Response]:
    def post(number: int) -> httpx.Response:
        labelled = request | {"labels": {"number": str(number)}}
        return client.post("/v1/evaluations", json=labelled)

    return post


def _measured(ask: Callable[[int], httpx.Response], process: psutil.Process) -> tuple[float, float]:
    """Milliseconds until the answer, and of the processor, of answers after the first one."""
    found = []
    before = 0.0
    for number in range(ASKED):
        if number == 1:
            before = sum(process.cpu_times()[:2])
        began = time.perf_counter()
        answer = ask(number)
        found.append(1000 * (time.perf_counter() - began))
        assert answer.is_success, answer.text
    cpu = 1000 * (sum(process.cpu_times()[:2]) - before) / (ASKED - 1)
    return statistics.median(found[1:]), cpu


if __name__ == "__main__":
    main()
