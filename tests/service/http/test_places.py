"""Checkpoints that look at places of images, over HTTP: stored, scored, and refused where they do
not fit.
"""

import numpy as np
import pytest

from helpers import attending_models as small
from helpers.fleet import bundle_of, upload
from helpers.service_here import service_here
from oracles import attention as oracle
from workers.inference import checkpoints

pytestmark = [pytest.mark.processes, pytest.mark.long]

PEOPLE = {f"{n}.jpg": [f"w{n + 2} w3", "w4"] for n in range(len(small.REGIONS))}
GRID = small.regions([4] * len(PEOPLE), seed=7)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("places") / "home") as found:
        yield found


@pytest.fixture(scope="module")
def datasets(service):
    """One dataset of each kind of features, with the same captions."""
    regions = small.regions(small.REGIONS)
    bundles = {
        "vectors": bundle_of(PEOPLE, GRID[:, 0]),
        "grid": bundle_of(PEOPLE, GRID),
        "regions": bundle_of(PEOPLE, np.nan_to_num(regions), counts=np.array(small.REGIONS)),
    }
    with service.client() as client:
        for name, content in bundles.items():
            answer = client.put(f"/v1/datasets/{name}", content=content)
            assert answer.status_code == 201, answer.text
    return bundles


def _uploaded(client, tmp_path, of):
    path = tmp_path / "model.safetensors"
    checkpoints.write_checkpoint(path, small.model(of, small.arrays(of)))
    return upload(client, path.read_bytes())


def _submitted(client, model, dataset, **more):
    request = {"checkpoint": model, "dataset": dataset, "postgen": ["bleu_1"], **more}
    return client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})


def test_a_dataset_says_what_its_features_are_of(client, datasets):
    found = {name: client.get(f"/v1/datasets/{name}").json()["features"] for name in datasets}
    told = {name: (of["inputs"], of["places"], of["size"]) for name, of in found.items()}
    assert told == {
        "vectors": ("features", 1, 5),
        "grid": ("grid", 4, 5),
        "regions": ("regions", 4, 5),
    }


@pytest.mark.parametrize("architecture", small.NAMES)
def test_a_checkpoint_is_scored_as_by_its_definition(client, datasets, tmp_path, architecture):
    of = small.description(architecture)
    model = _uploaded(client, tmp_path, of)
    shown = client.get(f"/v1/checkpoints/{model}").json()
    assert (shown["architecture"], shown["inputs"]) == (architecture, "regions")
    assert shown["config"]["size"] == 8
    scored = _submitted(client, model, "regions/test", pregen=["mean_mean_pplx_none"]).json()
    assert scored["status"] == "succeeded", scored
    rows, totals = small.regions(small.REGIONS), []
    for row, captions in zip(rows, PEOPLE.values(), strict=True):
        for caption in captions:
            words = [int(word[1:]) for word in caption.split()]
            logits = oracle.forward(
                architecture, small.arrays(of), small.there(row), words, small.HEADS
            )
            targets = [*words, oracle.END]
            logp = logits[np.arange(len(targets)), targets] - np.logaddexp.reduce(logits, axis=1)
            totals.append(-logp.mean())
    values = np.exp(totals)
    assert scored["scores"]["mean_mean_pplx_none"]["value"] == pytest.approx(
        values.reshape(-1, 2).mean(), rel=1e-5
    )


@pytest.mark.parametrize(
    ("inputs", "dataset", "words"),
    [
        ("grid", "vectors", "takes features of a grid's places, and the dataset has one vector"),
        ("grid", "regions", "takes features of a grid's places, and the dataset has features of r"),
        ("regions", "grid", "takes features of regions, and the dataset has features of a grid"),
    ],
)
def test_a_dataset_of_another_kind_is_refused_at_once(
    client, datasets, tmp_path, inputs, dataset, words
):
    of = small.description("soft_attention", inputs=inputs)
    model = _uploaded(client, tmp_path, of)
    answer = _submitted(client, model, f"{dataset}/test")
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]
    assert answer.json()["errors"][0]["pointer"] == "/dataset"
