"""T64: a version of a dataset is its content, and its captions are known apart from its features.

In process: what is shared is decided by keys and rows, which are those of any service.
"""

import io
import tarfile
from itertools import count

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.fleet import bundle_of, checkpoint, digest, upload
from helpers.submissions import evaluate
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.engine.tables import task_rows

VGG, CLIP = (
    FeatureEncoder(name="vgg", digest="sha256:0"),
    FeatureEncoder(name="clip", digest="sha256:1"),
)
IMAGES = [f"{at}.jpg" for at in range(9)]
ROWS = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
FAST = {"beam": 1, "min_words": 1, "max_words": 4}
_NAMES = count()


@pytest.fixture
def name():
    return f"set{next(_NAMES)}"


@pytest.fixture
def people(name):
    """Captions that no other test has: equal ones are shared, whatever name they have."""
    return {image: [f"w2 w3 w{at} {name}", f"w2 w{at + 1}"] for at, image in enumerate(IMAGES)}


def _with(encoder, people, rows=ROWS):
    return bundle_of(people, rows, encoder=encoder)


def _packed_otherwise(tar):
    """The same files in the reverse order, with times and owners, and two more files."""
    found, buffer = {"README": b"of nobody's concern"}, io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found |= {member.name: archive.extractfile(member).read() for member in archive}
    found["notes/captions.jsonl"] = b"not the captions"
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for at, (each, data) in enumerate(reversed(found.items())):
            member = tarfile.TarInfo(f"./{each}")
            member.size, member.mtime, member.uname = len(data), 1.7e9 + at + 0.5, "somebody"
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _put(client, name, tar, status=201):
    answer = client.put(f"/v1/datasets/{name}", content=tar)
    assert answer.status_code == status, answer.text
    return answer.json()


def _evaluate(client, dataset, **asked):
    request = {"tokenizer": "none", "postgen": ["cider_d"], **asked}
    return evaluate(client, dataset=dataset, **request)


def _said(text="w2 w3 w4"):
    return [{"image": image, "caption": text} for image in IMAGES]


def _by(client, encoder, seed=0):
    return {
        "checkpoint": upload(client, checkpoint(seed, encoder)),
        "pregen": ["perplexity"],
        "decoding": FAST,
    }


def _board(client, reference):
    answer = client.get(f"/v1/datasets/{reference}/leaderboard")
    return {item["evaluation"] for item in answer.json()["items"]}


def _tasks(service, kind):
    with service.records.reading() as connection:
        query = sa.select(task_rows.c.key).where(task_rows.c.kind == kind)
        return set(connection.execute(query).scalars())


def _reading(service, digests):
    """The kinds of tasks that have one of these objects as input."""
    with service.records.reading() as connection:
        rows = connection.execute(sa.select(task_rows.c.kind, task_rows.c.inputs)).all()
    return {row.kind for row in rows if any(digest in row.inputs for digest in digests)}


@pytest.mark.long
def test_the_same_files_in_another_tar_are_the_same_version_and_the_board_stays(
    client, service, name, people
):
    tar = _with(VGG, people)
    first = _put(client, name, tar)
    scored = _evaluate(client, f"{name}/test", captions=_said())
    again = _packed_otherwise(tar)
    assert digest(again) != digest(tar)
    assert _put(client, name, again, 200) == first
    assert _put(client, name, tar, 200) == first
    assert _board(client, name) == {scored["id"]}
    assert service.blob_files(digest(again)) == []
    assert client.get(f"/v1/datasets/{name}").json() == first


def test_two_feature_sets_share_references_scores_and_boards(client, service, name, people):
    for encoder in (VGG, CLIP):
        _put(client, name, _with(encoder, people))
    kinds = "references", "cider_d"
    before = {kind: _tasks(service, kind) for kind in kinds}
    first = _evaluate(client, f"{name}@v1/test", captions=_said())
    again = _evaluate(client, f"{name}@v2/test", captions=_said())
    assert {task["cached"] for task in again["tasks"]} == {True}
    assert again["dataset"]["version"] == "v2"
    other = _evaluate(client, f"{name}@v2/test", captions=_said("w9"))
    new = {kind: len(_tasks(service, kind) - before[kind]) for kind in kinds}
    assert new == {"references": 1, "cider_d": 2}
    assert _board(client, f"{name}@v1") == _board(client, name) == {first["id"], other["id"]}


@pytest.mark.long
def test_models_of_two_encoders_take_their_features_and_compare(client, service, name, people):
    """No version is named: the latest captions count, with the features of each model. What reads
    captions alone is no task on a whole bundle, which may have gigabytes of features.
    """
    bundles = [_put(client, name, _with(encoder, people))["digest"] for encoder in (VGG, CLIP)]
    before = _tasks(service, "references")
    by_vgg, by_clip = (
        _evaluate(client, f"{name}/test", labels={"of": encoder.name}, **_by(client, encoder))
        for encoder in (VGG, CLIP)
    )
    said = _evaluate(client, f"{name}/test", captions=_said())
    assert [each["dataset"]["version"] for each in (by_vgg, by_clip, said)] == ["v1", "v2", "v2"]
    assert len(_tasks(service, "references") - before) == 1
    assert _board(client, name) == {by_vgg["id"], by_clip["id"], said["id"]}
    assert _reading(service, bundles) == {"captions", "columns", "prefix"}
    for a, b, metrics in ((by_vgg, by_clip, ["cider_d", "perplexity"]), (by_vgg, said, None)):
        asked = {"a": a["id"], "b": b["id"], **({"metrics": metrics} if metrics else {})}
        answer = client.post("/v1/comparisons", json=asked)
        assert answer.status_code == 202, answer.text
        assert answer.json()["scores"].keys() == {*(metrics or ["cider_d"])}


def test_the_captions_are_sent_as_they_came(client, name, people):
    lines = {"Accept": "application/x-ndjson"}
    answer = _put(client, name, _with(VGG, people))
    sent = client.get(f"/v1/datasets/{name}", headers=lines).content
    assert digest(sent) == answer["captions"]
