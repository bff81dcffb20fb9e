"""A service whose processes die at random, and what its evaluations have to be."""

import contextlib
import time
from collections.abc import Callable, Sequence
from random import Random

import httpx
import psutil

from helpers.fleet import Fleet, checkpoint, digest, tus_creation, tus_part, until, upload

VICTIMS = ("api", "worker", "workers.runtime.child", "janitor", "redis-server")
PERIOD = 2  # seconds from one kill to the next


def post(fleet, checkpoint_, number):
    """As a client does: the same key again until somebody answers."""
    request = {
        "checkpoint": checkpoint_,
        "dataset": "tiny/test",
        "postgen": [],
        "labels": {"n": str(number)},
    }

    def answered():
        with contextlib.suppress(httpx.HTTPError), fleet.client() as client:
            headers = {"Idempotency-Key": f"storm-{number}"}
            answer = client.post("/v1/evaluations", json=request, headers=headers)
            return answer.json()["id"] if answer.status_code == 202 else None
        return None

    return until(answered, 60, "an answer")


def blow(
    fleet: Fleet,
    identities: Sequence[str],
    seconds: float,
    rng: Random,
    meanwhile: Callable[[dict[int, str]], None] = lambda submitted: None,
) -> dict[int, str]:
    """Submit all while a process is killed every other second; the runs' ids. `meanwhile` is
    called with those that were acknowledged.
    """
    submitted: dict[int, str] = {}
    ends, next_kill = time.monotonic() + seconds, time.monotonic() + 1
    while time.monotonic() < ends or len(submitted) < len(identities):
        if len(submitted) < len(identities):
            number = len(submitted)
            submitted[number] = post(fleet, identities[number], number)
        if next_kill < time.monotonic() < ends:
            next_kill += PERIOD
            victim = _victim(fleet, rng)
            if victim is not None:
                with contextlib.suppress(psutil.Error):
                    victim.kill()
        meanwhile(submitted)
        time.sleep(0.05)
    return submitted


class Pieces:
    """Uploads that come in pieces, one after the other, whatever dies meanwhile."""

    _PARTS = 12  # of each file

    def __init__(self, fleet: Fleet, files: Sequence[bytes]) -> None:
        self.fleet = fleet
        self.stored: list[str] = []
        self._left = list(files)
        self._place: str | None = None

    def step(self, _: object = None) -> bool:
        """Send the next piece, or ask where it belongs; True if there is more to send."""
        if not self._left:
            return False
        with contextlib.suppress(httpx.HTTPError), self.fleet.client() as client:
            self._send(client, self._left[0])
        return bool(self._left)

    def _send(self, client: httpx.Client, data: bytes) -> None:
        name = digest(data)
        if self._place is None:
            begin = tus_creation(len(data), kind="checkpoint", digest=name)
            begun = client.post("/v1/uploads", headers=begin)
            if begun.status_code == httpx.codes.CREATED:
                self._place = begun.headers["location"]
            return
        there = client.head(self._place)
        at = int(there.headers.get("upload-offset", 0))
        if at == len(data):
            self._end(client, name)
        elif there.is_success:
            until = min(len(data), at + len(data) // self._PARTS + 1)
            client.patch(self._place, headers=tus_part(at), content=data[at:until])

    def _end(self, client: httpx.Client, name: str) -> None:
        """The next one, once what was sent is there."""
        if client.head(f"/v1/checkpoints/{name}").is_success:
            self.stored.append(name)
            self._left.pop(0)
            self._place = None


def _victim(fleet, rng):
    family = [process for process in fleet.family() if process.is_running()]
    named = []
    for process in family:
        with contextlib.suppress(psutil.Error):
            words = (process.name(), *process.cmdline())
            named += [process for word in VICTIMS if word in words]
    return rng.choice(named) if named else None


def answers(fleet) -> bool:
    with contextlib.suppress(httpx.HTTPError), fleet.client() as client:
        return client.get("/readyz").status_code == httpx.codes.OK
    return False


def golden_scores(serve_here, folder, identities):
    """The same checkpoints on a service that nobody disturbs: one in this process."""
    with serve_here(folder / "calm") as calm, calm.client() as client:
        calm.add_dataset()
        scores = {}
        for number, identity in enumerate(identities):
            upload(client, checkpoint(seed=number))
            request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": []}
            answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=30"})
            scores[number] = answer.json()["scores"]
    return scores
