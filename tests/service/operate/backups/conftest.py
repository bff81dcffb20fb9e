import pytest

from helpers.backup_files import Kept
from helpers.fleet import bundle, checkpoint, upload


@pytest.fixture(scope="module")
def kept(serve_here, tmp_path_factory):
    """A home with three evaluations that have ended and one that waits, and its backup."""
    home = tmp_path_factory.mktemp("kept") / "a home"
    with serve_here(home) as service:
        with service.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
            ended = [_submitted(client, seed) for seed in range(3)]
            service.hold()
            waiting = _submitted(client, 3)
            answers = {at: client.get(f"/v1/evaluations/{at}").json() for at in (*ended, waiting)}
        yield Kept.of(home, answers, ended, waiting)


def _submitted(client, seed):
    request = {
        "checkpoint": upload(client, checkpoint(seed=seed)),
        "dataset": "tiny/test",
        "postgen": [],
        "labels": {"n": str(seed)},
    }
    return client.post("/v1/evaluations", json=request).json()["id"]
