"""What a key costs: polls a second with one and without, in turns of two seconds, in one run.

    python tests/benchmarks/keys.py [DATABASE_URL_OF_ONE DATABASE_URL_OF_THE_OTHER]

Two services stand beside each other, of which one has a key; what is polled is an evaluation that
has ended. Prints; judges nothing. At least 85 % are promised.
"""

import os
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import httpx

from fleet import Fleet, bundle
from service.access import keys
from service.contract.askers import Scope

TURNS, SECONDS = 8, 2.0
CAPTIONS = [{"image": f"{n}.jpg", "caption": "w1 w2"} for n in range(12)]
ASKED = {"dataset": "tiny/test", "captions": CAPTIONS, "postgen": ["bleu_1"]}


class Polled:
    """A service with an evaluation that has ended, and the requests that poll it."""

    def __init__(self, folder: Path, url: str | None, *, with_key: bool) -> None:
        self.fleet = Fleet(
            folder, **({} if url is None else {"PRESCORE_DATABASE_URL": url})
        ).start()
        own = {}
        if with_key:
            _, text = keys.create_key(self.fleet.records, "red", Scope.ADMIN)
            own = {"Authorization": f"Bearer {text}"}
        with httpx.Client(base_url=self.fleet.url, headers=own, timeout=60) as client:
            client.put("/v1/datasets/tiny", content=bundle(12)).raise_for_status()
            wait = {"Prefer": "wait=30"}
            run = client.post("/v1/evaluations", json=ASKED, headers=wait).json()["id"]
            path = f"/v1/evaluations/{run}"
            tag = client.get(path).headers["ETag"]
        sent = "".join(f"{name}: {value}\r\n" for name, value in own.items())
        head = f"GET {path} HTTP/1.1\r\nHost: prescore\r\n{sent}"
        self.requests = {
            "200": f"{head}\r\n".encode(),
            "304": f"{head}If-None-Match: {tag}\r\n\r\n".encode(),
        }

    def rate(self, status: str) -> float:
        """Answers a second, one after the other, over one connection."""
        request, many = self.requests[status], 0
        with socket.create_connection(("127.0.0.1", self.fleet.port)) as connection:
            until = time.perf_counter() + SECONDS
            while time.perf_counter() < until:
                connection.sendall(request)
                answer = _answer(connection)
                assert answer.startswith(f"HTTP/1.1 {status}".encode()), answer[:200]
                many += 1
        return many / SECONDS


def _answer(connection: socket.socket) -> bytes:
    """An answer with its body, which comes in a packet of its own."""
    found = connection.recv(1 << 16)
    head, _, body = found.partition(b"\r\n\r\n")
    told = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = sum(int(line.partition(b":")[2]) for line in told) - len(body)
    while missing > 0:
        more = connection.recv(1 << 16)
        missing -= len(more)
    return head


def main() -> None:
    urls = sys.argv[1:] or [None, None]
    with tempfile.TemporaryDirectory() as name:
        without = Polled(Path(name) / "open", urls[0], with_key=False)
        having = Polled(Path(name) / "closed", urls[1], with_key=True)
        try:
            for status in without.requests:
                pairs = [(without.rate(status), having.rate(status)) for _ in range(TURNS)]
                ratios = [with_key / plain for plain, with_key in pairs]
                plain, with_key = (statistics.median(side) for side in zip(*pairs, strict=True))
                load = os.getloadavg()[0]
                print(
                    f"polls answered {status}: {plain:.0f} a second without a key, "
                    f"{with_key:.0f} with one: {100 * statistics.median(ratios):.0f} % "
                    f"({100 * min(ratios):.0f} to {100 * max(ratios):.0f}), load {load:.1f}"
                )
        finally:
            without.fleet.stop()
            having.fleet.stop()


if __name__ == "__main__":
    main()
