"""The service's speed: from POST to scores, cached answers, polls a second. Prints; judges nothing.

    sh tests/run.sh --bench-service

A dataset of 1,000 images and 5,000 references, a model of 512 units and 10,000 words; the service
is the real one, started for this. Polls are counted with `wrk` where it is installed.
"""

import hashlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import torch
from case import made_up  # beside this file

from helpers.builders import model, tensors
from helpers.fleet import Fleet, bundle_of, until, upload
from workers.inference import checkpoints

IMAGES, DECODES = 1000, 10
UPLOAD_BYTES = 500_000_000
CONNECTIONS, PACED_SECONDS = 8, 5.0
LONG = {"beam": 5, "min_words": 40, "max_words": 50}


def main() -> None:
    case = made_up(IMAGES, torch.device("cpu"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoints.write_checkpoint(folder / "model.safetensors", case.model)
        fleet = Fleet(folder / "home", OMP_NUM_THREADS="2").start()
        try:
            with fleet.client() as client:
                client.put("/v1/datasets/coco", content=_bundle(case))
                _measure(client, (folder / "model.safetensors").read_bytes(), case, folder)
                _polls(fleet, client)
                _uploads(fleet, folder)
        finally:
            fleet.stop()


def _measure(client: httpx.Client, model: bytes, case, folder: Path) -> None:
    warm = upload(client, _another(case, folder, 0.5))
    _run(client, warm, "first, the worker still cold")
    identity = upload(client, model)
    _run(client, identity, "on a warm worker")
    began = time.perf_counter()
    answer = client.post("/v1/evaluations", json=_request(identity), headers={"Prefer": "wait=30"})
    assert all(task["cached"] for task in answer.json()["tasks"])
    print(f"the same again: answered in {1000 * (time.perf_counter() - began):.0f} ms")
    decodes = [
        client.post(
            "/v1/evaluations",
            json=_request(identity, pregen=[], postgen=["bleu"], decoding=LONG | {"beam": beam}),
        ).json()["id"]
        for beam in range(3, 3 + DECODES)
    ]
    until(lambda: _get(client, decodes[0])["status"] == "running", 30, "a running decode")
    _run(client, upload(client, _another(case, folder, 0.9)), f"behind {DECODES} long decodes")
    for decode in decodes:
        client.post(f"/v1/evaluations/{decode}/cancel")


def _another(case, folder: Path, factor: float) -> bytes:
    """A checkpoint that nobody has scored."""
    tensors = {name: at * factor for name, at in case.model.tensors.items()}
    checkpoints.write_checkpoint(
        folder / "other", type(case.model)(case.model.description, tensors)
    )
    return (folder / "other").read_bytes()


def _run(client: httpx.Client, identity: str, how: str) -> None:
    began = time.perf_counter()
    evaluation = client.post("/v1/evaluations", json=_request(identity)).json()["id"]
    seen: dict[str, float] = {}
    while "pregen" not in seen:
        for task in _get(client, evaluation)["tasks"]:
            if task["status"] == "done":
                seen.setdefault(task["name"], time.perf_counter() - began)
        time.sleep(0.02)
    print(f"{how}: prefix scores {seen['prefix']:.2f} s, all pre-gen scores {seen['pregen']:.2f} s")


def _request(identity: str, **more: object) -> dict[str, object]:
    return {"checkpoint": identity, "dataset": "coco/test", "postgen": [], **more}


def _get(client: httpx.Client, identity: str) -> dict:
    return client.get(f"/v1/evaluations/{identity}").json()


def _uploads(fleet: Fleet, folder: Path) -> None:
    """A checkpoint of half a gigabyte, beside the least that must be done with it."""
    words = UPLOAD_BYTES // (4 * 3 * 512)
    path = folder / "large.safetensors"
    checkpoints.write_checkpoint(
        path, model("merge", "gru", tensors("merge", "gru", size=512, words=words))
    )
    size = path.stat().st_size
    began = time.perf_counter()
    with path.open("rb") as source, (folder / "copy").open("wb") as copy:
        digest = hashlib.sha256()
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            copy.write(chunk)
        os.fsync(copy.fileno())
    floor = time.perf_counter() - began
    api = fleet.find("api")
    before = api.memory_info().rss
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, blocksize=1 << 18)
    began = time.perf_counter()
    with path.open("rb") as body:
        address = f"/v1/checkpoints/sha256:{digest.hexdigest()}"
        connection.request("PUT", address, body, {"Content-Length": str(size)})
        assert connection.getresponse().status == http.client.CREATED
    took = time.perf_counter() - began
    grown = (api.memory_info().rss - before) / 1e6
    print(
        f"upload of {size / 1e6:.0f} MB: {size / took / 1e6:.0f} MB/s (hashing and writing alone "
        f"{size / floor / 1e6:.0f} MB/s, ratio {floor / took:.2f}), API memory +{grown:.0f} MB"
    )


def _polls(fleet: Fleet, client: httpx.Client) -> None:
    if shutil.which("wrk") is None:
        print("polls: not measured, wrk is not installed")
        return
    identity = client.get("/v1/evaluations").json()["items"][-1]["id"]
    address = f"{fleet.url}/v1/evaluations/{identity}"
    tag = client.get(address).headers["ETag"]
    for what, options in (("200", []), ("304", ["-H", f"If-None-Match: {tag}"])):
        command = ["wrk", "-t1", "-c8", "-d5", "--latency", *options, address]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = dict(line.split()[:2] for line in output.splitlines() if len(line.split()) > 1)
        rate = float(found["Requests/sec:"])
        print(f"polls answered {what}: {rate:.0f} a second, p99 {found['99%']} at full load")
        extra = f"If-None-Match: {tag}\r\n" if what == "304" else ""
        late = _paced(fleet.port, address, extra, rate / 2)
        print(f"  at half of that: p50 {_at(late, 0.5):.1f} ms, p99 {_at(late, 0.99):.1f} ms")


def _paced(port: int, address: str, extra: str, rate: float) -> list[float]:
    """Seconds from when each request was due to its answer, at a steady rate."""
    path = address.split(str(port), 1)[1]
    request = f"GET {path} HTTP/1.1\r\nHost: prescore\r\n{extra}\r\n".encode()
    late: list[float] = []

    def one(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            due = time.perf_counter() + number / rate
            until = due + PACED_SECONDS
            while due < until:
                time.sleep(max(0.0, due - time.perf_counter()))
                connection.sendall(request)
                connection.recv(1 << 16)
                late.append(time.perf_counter() - due)
                due += CONNECTIONS / rate

    threads = [threading.Thread(target=one, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(late)


def _at(late: list[float], share: float) -> float:
    return 1000 * late[int(share * len(late))]


def _bundle(case) -> bytes:
    words, references = case.model.description.vocabulary, case.references
    captions = [
        " ".join(words[token] for token in references.tokens[start : stop - 1])
        for start, stop in pairwise(references.caption_offsets)
    ]
    people = {
        f"{at:05}.jpg": captions[start:stop]
        for at, (start, stop) in enumerate(pairwise(references.image_offsets))
    }
    return bundle_of(people, case.features)


if __name__ == "__main__":
    main()
