"""Published systems scored through HTTP, as a user would send their captions."""

import io
import tarfile

import pytest

from parity import systems
from service.contract import bundles
from service.contract.bundles import Item

QUICK = "init_1"


@pytest.fixture(scope="module")
def images(fleet, data, tmp_path_factory):
    """Flickr8k's test split, its references as Karpathy's tokens."""
    names = (data / "systems" / "imgs_flickr8k.txt").read_text("utf-8").split()
    references = systems.references(data, "flickr8k")
    items = [
        Item(name, "test", tuple(captions))
        for name, captions in zip(names, references, strict=True)
    ]
    folder = tmp_path_factory.mktemp("flickr8k")
    bundles.write_folder(folder, items)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder / bundles.CAPTIONS, bundles.CAPTIONS)
    with fleet.client() as client:
        assert client.put("/v1/datasets/flickr8k", content=buffer.getvalue()).status_code == 201
    return names


@pytest.mark.parametrize("tokenizer", ["none", "ptb"])
@pytest.mark.parametrize(
    "name",
    [
        QUICK,
        *(pytest.param(at, marks=pytest.mark.slow) for at in systems.NAMES if at != QUICK),
    ],
)
def test_published_systems_score_as_published(fleet, data, images, name, tokenizer):
    published = systems.system(data, "flickr8k", name)
    captions = [
        {"image": image, "caption": caption}
        for image, caption in zip(images, published.captions, strict=True)
    ]
    request = {"captions": captions, "dataset": "flickr8k/test", "tokenizer": tokenizer}
    with fleet.client() as client:
        answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})
        found = answer.json()
    assert found["status"] == "succeeded", found
    scores = {metric: score["value"] for metric, score in found["scores"].items()}
    for order, value in enumerate(published.bleu, start=1):
        assert scores[f"bleu_{order}"] == pytest.approx(value, abs=1e-3)
    assert scores["rouge_l"] == pytest.approx(published.rouge_l, abs=1e-3)
    assert scores["cider_d"] == pytest.approx(published.cider_d, abs=1e-3)
    if tokenizer == "none":
        assert repr(scores["meteor"]) == published.meteor
