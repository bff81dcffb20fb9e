"""From pictures and captions to scores of a checkpoint, over HTTP; and checkpoints that look at
places of images: stored, scored, and refused where they do not fit.
"""

import json

import numpy as np
import pytest

from helpers import attending_models as small
from helpers import image_encoders
from helpers.contract_files import line
from helpers.fleet import ENCODER, bundle_of, checkpoint, upload
from helpers.service_here import service_here
from helpers.submissions import add_pictures
from oracles import attention as oracle
from prescore import Client, InvalidArgument
from service.contract.assets import AssetFolders
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import checkpoints
from workers.offline import assets

pytest.importorskip("PIL", reason="pictures are decoded by Pillow")

pytestmark = [pytest.mark.processes, pytest.mark.long]

IMAGES = [f"{place}.jpg" for place in range(5)]
CAPTIONS = b"".join(line(image, references=["w2 w3 w4", "w5 w6"]) for image in IMAGES)
PICTURES = {image: image_encoders.photo(place) for place, image in enumerate(IMAGES)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures") / "home"


@pytest.fixture(scope="module")
def service(home):
    with service_here(home) as found:
        yield found


@pytest.fixture(scope="module")
def encoder(home, service):
    """The identity of the registered encoder."""
    path = image_encoders.write(home / "e.safetensors")
    found = assets.add_asset("image-encoder", path, AssetFolders(home))["image-encoder"]
    return FeatureEncoder(name="random 0", digest=f"sha256:{found.sha256}")


def _submitted(client, model, dataset, **more):
    request = {"checkpoint": model, "dataset": dataset, "postgen": ["bleu_1"], **more}
    return client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})


def _cached(client, model):
    found = client.get(f"/v1/checkpoints/{model}").json()["cached"]
    return {each["dataset"]: (each["columns"], each["features"]) for each in found}


def _tasks(evaluation):
    return {task["name"]: task for task in evaluation["tasks"]}


def test_a_checkpoint_is_scored_on_pictures_as_on_their_features(client, encoder, service, home):
    """And the features of a dataset's pictures are computed once."""
    added = add_pictures(client, "photos", CAPTIONS, PICTURES)
    assert added["splits"]["test"]["pictures"] == 5
    assert added["features"] is None
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    scored = _submitted(client, model, "photos/test").json()
    assert scored["status"] == "succeeded", scored
    assert scored["warnings"] == []
    tasks = _tasks(scored)
    assert _cached(client, model) == {"photos@v1/test": (True, True)}
    other = upload(client, checkpoint(seed=1, features=1280, encoder=encoder))
    assert _cached(client, other) == {"photos@v1/test": (False, True)}
    foreign = upload(client, checkpoint(features=1280, encoder=ENCODER))
    assert _cached(client, foreign) == {}
    again = _tasks(_submitted(client, other, "photos/test").json())
    assert (tasks["features"]["cached"], again["features"]["cached"]) == (False, True)
    rows = _rows(home)
    people = {image: ["w2 w3 w4", "w5 w6"] for image in IMAGES}
    answer = client.put("/v1/datasets/rows", content=bundle_of(people, rows, encoder=encoder))
    assert answer.status_code == 201
    by_rows = _submitted(client, model, "rows/test").json()
    assert by_rows["status"] == "succeeded"
    assert "features" not in _tasks(by_rows)
    assert _cached(client, model)["rows@v1/test"] == (True, False)
    assert _values(scored) == _values(by_rows)


def _rows(home):
    """The same pictures by Pillow and the encoder in this process, with no service or sandbox."""
    import io

    from PIL import Image

    from workers.inference import mobilenet_v2

    network = mobilenet_v2.read_image_encoder(home / "e.safetensors")
    rows = []
    for content in PICTURES.values():
        image = Image.open(io.BytesIO(content)).resize((32, 32), Image.Resampling.BILINEAR)
        rows.append(network.features(np.array(image)[None])[0])
    return np.stack(rows)


def test_each_checkpoint_has_the_features_of_its_own_encoder(client, encoder, service, home):
    """Of several that are registered; and who registers another one loses no features."""
    add_pictures(client, "both", CAPTIONS, PICTURES)
    path = image_encoders.write(home / "second.safetensors", seed=1)
    registered = assets.add_asset("image-encoder", path, AssetFolders(home))["image-encoder"]
    second = FeatureEncoder(name="random 1", digest=f"sha256:{registered.sha256}")
    models = [upload(client, checkpoint(features=1280, encoder=one)) for one in (encoder, second)]
    found = [_submitted(client, model, "both/test").json() for model in models]
    assert [each["status"] for each in found] == ["succeeded"] * 2
    assert _values(found[0]) != _values(found[1])
    again = upload(client, checkpoint(seed=2, features=1280, encoder=encoder))
    assert _tasks(_submitted(client, again, "both/test").json())["features"]["cached"] is True
    unknown = upload(client, checkpoint(features=1280, encoder=ENCODER))
    refused = _submitted(client, unknown, "both/test")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/dataset")
    for each in (encoder, second):
        assert f"{each.name} ({each.digest})" in refused.json()["detail"]
    assert "are registered: `prescore assets add image-encoder FILE`" in refused.json()["detail"]
    assert str(home) not in refused.text


def _values(evaluation):
    return {name: score["value"] for name, score in evaluation["scores"].items()}


def test_pictures_that_cannot_be_decoded_fail_the_scores_by_name_and_nothing_shifts(
    client, encoder
):
    cut = {**PICTURES, "1.jpg": PICTURES["1.jpg"][:-300], "3.jpg": b"\xff\xd8\xff"}
    add_pictures(client, "cut", CAPTIONS, cut)
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    found = _submitted(client, model, "cut/test").json()
    assert found["status"] == "failed"
    tasks = _tasks(found)
    assert tasks["features"]["status"] == "done"
    told = json.dumps(tasks["prefix"]["error"])
    assert "invalid_dataset" in told
    assert "the pictures of 2 images cannot be decoded: '1.jpg' (" in told
    assert "'3.jpg' (" in told
    named = [(each["code"], each["image"]) for each in found["warnings"]]
    assert named == [("undecoded", None), ("undecoded", "1.jpg"), ("undecoded", "3.jpg")]
    assert found["warnings"][0]["detail"] == "2 of 5 pictures cannot be decoded"


def test_where_pictures_are_missing_the_request_is_refused(client, encoder):
    some = {image: content for image, content in PICTURES.items() if image != "2.jpg"}
    add_pictures(client, "some", CAPTIONS, some)
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    told = _submitted(client, model, "some/test")
    assert told.status_code == 422
    assert "some@v1/test has the pictures of 4 of its 5 images" in told.json()["detail"]


def test_of_a_datasets_versions_the_latest_with_pictures_and_the_same_captions_is_taken(
    client, encoder
):
    add_pictures(client, "versions", CAPTIONS, PICTURES)
    assert add_pictures(client, "versions", CAPTIONS, {})["version"] == "v2"
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    found = _submitted(client, model, "versions/test").json()
    assert found["dataset"]["version"] == "v1"
    named = _submitted(client, model, "versions@v2/test")
    assert "captions alone" in named.json()["detail"]


def test_pictures_are_added_to_a_datasets_images_from_a_folder(
    client, service, encoder, tmp_path, caplog
):
    """A new version with the same captions; the same pictures again make none."""
    add_pictures(client, "later", CAPTIONS, {})
    for image, content in PICTURES.items():
        (tmp_path / image).write_bytes(content)
    (tmp_path / "unnamed.jpg").write_bytes(b"x")
    with Client(service.url) as caller:
        found = [caller.add_pictures("later", tmp_path) for _ in range(2)]
        assert [each.version for each in found] == ["v2", "v2"]
        assert found[0].splits["test"].pictures == 5
        assert found[0].captions == caller.dataset("later@v1").captions
        (tmp_path / "2.jpg").unlink()
        assert caller.add_pictures("later", tmp_path).splits["test"].pictures == 4
        assert "1 of 5 images have no picture there: 2.jpg" in caplog.text
        with pytest.raises(InvalidArgument, match="has the picture of no image"):
            caller.add_pictures("later", service.home)
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    assert _submitted(client, model, "later/test").json()["dataset"]["version"] == "v2"


SAID_OF_PLACES = {f"{n}.jpg": [f"w{n + 2} w3", "w4"] for n in range(len(small.REGIONS))}
GRID = small.regions([4] * len(SAID_OF_PLACES), seed=7)


@pytest.fixture(scope="module")
def datasets(service):
    """One dataset of each kind of features, with the same captions."""
    regions = small.regions(small.REGIONS)
    bundles = {
        "vectors": bundle_of(SAID_OF_PLACES, GRID[:, 0]),
        "grid": bundle_of(SAID_OF_PLACES, GRID),
        "regions": bundle_of(
            SAID_OF_PLACES, np.nan_to_num(regions), counts=np.array(small.REGIONS)
        ),
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


def test_a_dataset_says_what_its_features_are_of(client, datasets):
    found = {name: client.get(f"/v1/datasets/{name}").json()["features"] for name in datasets}
    told = {name: (of["inputs"], of["places"], of["size"]) for name, of in found.items()}
    assert told == {
        "vectors": ("features", 1, 5),
        "grid": ("grid", 4, 5),
        "regions": ("regions", 4, 5),
    }


def test_a_checkpoint_is_scored_as_by_its_definition(client, datasets, tmp_path):
    architecture = small.NAMES[0]
    of = small.description(architecture)
    model = _uploaded(client, tmp_path, of)
    shown = client.get(f"/v1/checkpoints/{model}").json()
    assert (shown["architecture"], shown["inputs"]) == (architecture, "regions")
    assert shown["config"]["size"] == 8
    scored = _submitted(client, model, "regions/test", pregen=["mean_mean_pplx_none"]).json()
    assert scored["status"] == "succeeded", scored
    rows, totals = small.regions(small.REGIONS), []
    for row, captions in zip(rows, SAID_OF_PLACES.values(), strict=True):
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
