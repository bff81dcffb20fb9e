"""T49: passwords are in no argument, no child's environment, no log, no answer, no key."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from helpers import outside
from helpers.fleet import Fleet, bundle, checkpoint, until, upload
from service.access import keys
from service.contract.askers import Scope

PASSWORDS = {
    "PRESCORE_DATABASE_URL": "the-records-password",
    "PRESCORE_REDIS_URL": "the-queues-password",
}


def _with_password(url, user, password):
    """Both servers trust whoever comes: they take any password of these users."""
    parts = urlsplit(url)
    address = f"{user}:{password}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=address))


@pytest.fixture(scope="module")
def trusting(tmp_path_factory, s3_server):
    with outside.or_skip(outside.parts(s3_server)) as environment:
        for name, user in zip(PASSWORDS, ("postgres", "default"), strict=True):
            environment[name] = _with_password(environment[name], user, PASSWORDS[name])
        with Fleet(tmp_path_factory.mktemp("secrets"), **environment) as fleet:
            yield fleet


@pytest.fixture(scope="module")
def secrets():
    found = [*PASSWORDS.values(), outside.CREDENTIALS["AWS_SECRET_ACCESS_KEY"]]
    return [word.encode() for word in found]


@pytest.mark.slow  # a fleet of its own, on servers with passwords
def test_no_secret_shows_anywhere(trusting, secrets):
    made, trusting.key = keys.create_key(trusting.records, "red", Scope.ADMIN)
    _, other = keys.rotate_key(trusting.records, made.id)
    secrets = [*secrets, *(text.split("_")[2].encode() for text in (trusting.key, other))]
    with trusting.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(10))
        request = {"checkpoint": upload(client, checkpoint(seed=1)), "dataset": "tiny/test"}
        request["postgen"] = ["cider_d"]  # its tokens are Java's, which takes METEOR 5 s more
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        address = f"/v1/evaluations/{identity}"
        until(lambda: client.get(address).json()["status"] == "succeeded", 60, "its end")
        answers = [
            client.post("/v1/evaluations", content=b"{").content,
            client.get("/v1/evaluations/absent").content,
            client.get("/metrics").content,
            client.get("/readyz").content,
            client.get("/v1/me").content,
            client.get("/v1/audit").content,
            client.get("/v1/me", headers={"Authorization": f"Bearer {other[:-1]}"}).content,
        ]
    family = trusting.family()
    assert len(family) >= 7  # API, janitor, two workers and their children, a JVM
    places = {f"answer {number}": answer for number, answer in enumerate(answers)}
    places["log"] = trusting.log.read_bytes()
    for process in family:
        folder = Path("/proc") / str(process.pid)
        places[f"environment of {process.name()} {process.pid}"] = (folder / "environ").read_bytes()
    for process in (*family, trusting.supervisor):
        folder = Path("/proc") / str(process.pid)
        places[f"arguments of {process.pid}"] = (folder / "cmdline").read_bytes()
    for key in trusting.redis.scan_iter():
        places[f"Redis {key}"] = trusting.redis.dump(key) or b""
    found = [(place, word) for place, text in places.items() for word in secrets if word in text]
    assert not found
