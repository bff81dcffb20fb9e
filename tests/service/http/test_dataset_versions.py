"""T64: a version of a dataset is its content, and its captions are known apart from its features.

In process: what is shared is decided by keys and rows, which are those of any service.
"""

import io
import tarfile

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.fleet import bundle_of, checkpoint, upload
from helpers.submissions import evaluate
from helpers.tars import packed
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.engine.tables import task_rows

ENCODERS = (
    FeatureEncoder(name="vgg", digest="sha256:0"),
    FeatureEncoder(name="clip", digest="sha256:1"),
)
PEOPLE = {f"{at}.jpg": [f"w2 w3 w{at}", f"w2 w{at + 1}"] for at in range(9)}
ROWS = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
BUNDLES = [bundle_of(PEOPLE, ROWS, encoder=encoder) for encoder in ENCODERS]


def _put(client, tar, status=201):
    answer = client.put("/v1/datasets/two", content=tar)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def versions(service):
    """The same captions under two encoders."""
    with service.client() as client:
        return [_put(client, tar) for tar in BUNDLES]


def _evaluate(client, dataset="two/test", **asked):
    return evaluate(client, dataset=dataset, tokenizer="none", postgen=["cider_d"], **asked)


@pytest.mark.long
def test_models_of_two_encoders_take_their_features_and_compare(client, service, versions):
    """No version is named: the latest captions count, with the features of each model. What reads
    captions alone is no task on a whole bundle, which may have gigabytes of features.
    """
    decoding = {"beam": 1, "min_words": 1, "max_words": 4}
    models = [upload(client, checkpoint(0, encoder)) for encoder in ENCODERS]
    by_vgg, by_clip = (
        _evaluate(client, checkpoint=model, pregen=["perplexity"], decoding=decoding)
        for model in models
    )
    captions = [{"image": image, "caption": "w2 w3 w4"} for image in PEOPLE]
    said = _evaluate(client, captions=captions)
    assert [each["dataset"]["version"] for each in (by_vgg, by_clip, said)] == ["v1", "v2", "v2"]
    again = _evaluate(client, "two@v1/test", captions=captions)
    assert {task["cached"] for task in again["tasks"]} == {True}
    board = client.get("/v1/datasets/two/leaderboard").json()["items"]
    assert {one["evaluation"] for one in board} == {each["id"] for each in (by_vgg, by_clip, said)}
    with service.records.reading() as connection:
        tasks = connection.execute(sa.select(task_rows.c.kind, task_rows.c.inputs)).all()
    assert [task.kind for task in tasks].count("references") == 1
    whole = [each["digest"] for each in versions]
    of_bundles = {task.kind for task in tasks if any(digest in task.inputs for digest in whole)}
    assert of_bundles == {"captions", "columns", "prefix"}
    for a, b, metrics in ((by_vgg, by_clip, ["cider_d", "perplexity"]), (by_vgg, said, None)):
        answer = client.post(
            "/v1/comparisons", json={"a": a["id"], "b": b["id"], "metrics": metrics}
        )
        assert answer.status_code == 202, answer.text
        assert answer.json()["scores"].keys() == {*(metrics or ["cider_d"])}


def test_the_same_files_in_another_tar_are_the_same_version(client, versions):
    with tarfile.open(fileobj=io.BytesIO(BUNDLES[1])) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}
    assert _put(client, packed(dict(reversed(files.items()))), 200) == versions[1]
