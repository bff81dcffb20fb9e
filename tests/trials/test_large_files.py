"""T54: whatever a file holds too much of, and however much there is to page through, it costs the
API little, and nobody else waits for that.
"""

import http.client
import io
import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from helpers import load_probes
from helpers.contract_files import tar, tar_block, tar_entry
from helpers.fleet import checkpoint, digest, until, until_ended
from service.contract import limits

NAMES = itertools.count()
LARGE = 50_000_000_000  # bytes that are announced
SIZES = [4_000, pytest.param(100_000, marks=pytest.mark.slow)]


@pytest.fixture
def others(fleet):
    with load_probes.served(fleet, "a large file"):
        yield


def _lines(count, split="test", people=1):
    for at in range(count):
        references = [f"a man {at} rides a horse on a long beach {n}" for n in range(people)]
        line = {"image": f"{at:012}.jpg", "id": at, "split": split.format(at)}
        yield (json.dumps(line | {"references": references}) + "\n").encode()


def _bundle(lines):
    return tar(tar_entry(b"captions.jsonl", b"".join(lines)))


def _many_files(count):
    buffer = io.BytesIO(tar_entry(b"captions.jsonl", next(_lines(1))))
    buffer.seek(0, io.SEEK_END)
    for number in range(count):
        buffer.write(tar_block(b"images/%d.jpg" % number, 0))
    return buffer.getvalue() + bytes(1024)


BUNDLES = {
    "splits": (lambda: _bundle(_lines(60_000, "split {}")), "expected one of 1000 splits at most"),
    "references": (lambda: _bundle(_lines(20, people=101)), "expected at most 100 captions"),
    "signs": (
        lambda: _bundle([next(_lines(1)).replace(b"a man 0", b"(" * 9000)]),
        "expected at most 2000 words and signs",
    ),
    "files": (lambda: _many_files(limits.MEMBERS), "expected at most 500000 files"),
}


@pytest.fixture(params=[*[*BUNDLES][:-1], pytest.param("files", marks=pytest.mark.slow)])
def too_many(request):
    """A bundle, which is made before anybody looks at a clock, and what is said of it."""
    make, words = BUNDLES[request.param]
    return make(), words


def test_a_dataset_with_too_many_is_refused(too_many, client, others):
    bundle, words = too_many
    began = time.monotonic()
    answer = client.put(f"/v1/datasets/many{next(NAMES)}", content=bundle, timeout=120)
    print(f"T54 {words}: {answer.status_code}, {time.monotonic() - began:.1f} s")
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]


@pytest.fixture
def empty_files():
    return _many_files(200_000)


@pytest.mark.slow
def test_a_tar_of_200000_empty_files_keeps_nobody_waiting(empty_files, client, others):
    began = time.monotonic()
    answer = client.put(f"/v1/datasets/many{next(NAMES)}", content=empty_files)
    print(f"T54 200,000 empty files: {time.monotonic() - began:.1f} s")
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("announced", [True, False], ids=["length", "chunks"])
@pytest.mark.parametrize(
    ("place", "beginning", "word"),
    [
        ("checkpoints/sha256:" + "0" * 64, b"PK\3\4" * 256, "found a zip"),
        (
            "checkpoints/sha256:" + "0" * 64,
            b"\2\0\0\0\0\0\0\0{}" + bytes(1014),
            "invalid_checkpoint",
        ),
        ("datasets/nothing", b"PK\3\4" * 256, "found a zip"),
    ],
)
def test_a_wrong_file_is_refused_at_its_first_kilobyte(fleet, place, beginning, word, announced):
    """Its other 50 GB never come, and are never waited for."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=10)
    connection.putrequest("PUT", f"/v1/{place}")
    if announced:
        connection.putheader("Content-Length", str(LARGE))
        connection.endheaders(beginning)
    else:
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders(b"%x\r\n%b\r\n" % (len(beginning), beginning))
    answer = connection.getresponse()
    assert (answer.status, word in answer.read().decode()) == (422, True)
    connection.close()
    until(lambda: not fleet.leftovers(), 5, "nothing half-stored")


def test_who_leaves_while_a_dataset_is_judged_leaves_nothing(fleet, client):
    data = _bundle(_lines(60_000, people=3))
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=10)
    connection.request("PUT", "/v1/datasets/left", data)
    judge = until(lambda: _busy(fleet), 20, "a judge at work")
    judge.suspend()
    assert _reads(judge)  # it has not come to its end
    connection.close()
    until(lambda: not judge.is_running() and not fleet.leftovers(), 5, "nobody judges it")
    assert client.get("/v1/datasets/left").status_code == 404


def test_a_judge_that_is_killed_is_replaced(fleet, client):
    data = checkpoint(seed=54)
    assert client.put(f"/v1/checkpoints/{digest(data)}", content=data).status_code == 201
    for judge in fleet.running("service.stored.judge_process"):
        judge.kill()
    data = checkpoint(seed=55)
    assert client.put(f"/v1/checkpoints/{digest(data)}", content=data).status_code == 201


def _busy(fleet):
    judges = fleet.running("service.stored.judge_process")
    return next((each for each in judges if _reads(each)), None)


def _reads(judge):
    return any("/uploads/" in file.path for file in judge.open_files())


@pytest.mark.parametrize("count", SIZES)
def test_a_page_costs_a_page(fleet, client, others, count):
    """20 at once ask for one caption of many, and for the tokens of one image."""
    name = f"many{next(NAMES)}"
    answer = client.put(
        f"/v1/datasets/{name}", content=_bundle(_lines(count, people=5)), timeout=120
    )
    assert answer.status_code == 201, answer.text
    captions = [{"image": f"{at:012}.jpg", "caption": f"a man {at}"} for at in range(count)]
    request = {"dataset": f"{name}/test", "captions": captions, "postgen": ["bleu"]}
    place = client.post("/v1/evaluations", json=request, timeout=120).headers["Location"]
    found = until_ended(client, place.rpartition("/")[2], 200)
    assert found["status"] == "succeeded", found

    def page(_):
        began = time.monotonic()
        with httpx.Client(base_url=fleet.url, timeout=120) as one:
            answer = one.get(f"{place}/captions?limit=1")
        assert answer.json()["items"][0]["image"] == f"{0:012}.jpg"
        return time.monotonic() - began

    alone = page(None)
    with ThreadPoolExecutor(20) as pool:
        longest = max(pool.map(page, range(20)))
    print(f"T54 a page of {count}: {alone:.2f} s, 20 at once {longest:.2f} s")
    assert alone < 1
    assert longest < 3
    rows = client.get(f"{place}/captions", headers={"Accept": "text/csv"}).text.splitlines()
    assert len(rows) == count + 1
