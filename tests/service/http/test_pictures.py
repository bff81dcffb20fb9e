"""From pictures and captions to scores of a checkpoint, over HTTP."""

import json

import numpy as np
import pytest

from helpers import image_encoders
from helpers.contract_files import line, tar, tar_entry
from helpers.fleet import ENCODER, bundle_of, checkpoint, upload
from helpers.service_here import service_here
from prescore import Client, InvalidArgument
from service.contract.assets import AssetFolders
from service.contract.formats.checkpoint_header import FeatureEncoder
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


def _added(client, name, pictures, captions=CAPTIONS):
    files = [tar_entry(f"images/{each}".encode(), data) for each, data in pictures.items()]
    data = tar(tar_entry(b"captions.jsonl", captions), *files)
    answer = client.put(f"/v1/datasets/{name}", content=data)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def _submitted(client, model, dataset):
    request = {"checkpoint": model, "dataset": dataset, "postgen": ["bleu_1"]}
    return client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})


def _cached(client, model):
    found = client.get(f"/v1/checkpoints/{model}").json()["cached"]
    return {each["dataset"]: (each["columns"], each["features"]) for each in found}


def _tasks(evaluation):
    return {task["name"]: task for task in evaluation["tasks"]}


def test_a_checkpoint_is_scored_on_pictures_as_on_their_features(client, encoder, service, home):
    """And the features of a dataset's pictures are computed once."""
    added = _added(client, "photos", PICTURES)
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
    rows = _rows(home, "e")
    people = {image: ["w2 w3 w4", "w5 w6"] for image in IMAGES}
    answer = client.put("/v1/datasets/rows", content=bundle_of(people, rows, encoder=encoder))
    assert answer.status_code == 201
    by_rows = _submitted(client, model, "rows/test").json()
    assert by_rows["status"] == "succeeded"
    assert "features" not in _tasks(by_rows)
    assert _cached(client, model)["rows@v1/test"] == (True, False)
    assert _values(scored) == _values(by_rows)


def _rows(home, network, pictures=PICTURES):
    """The same pictures by Pillow and the encoder in this process, with no service or sandbox."""
    import io

    from PIL import Image

    from workers.inference import mobilenet_v2

    network = mobilenet_v2.read_image_encoder(home / f"{network}.safetensors")
    rows = []
    for content in pictures.values():
        image = Image.open(io.BytesIO(content)).resize((32, 32), Image.Resampling.BILINEAR)
        rows.append(network.features(np.array(image)[None])[0])
    return np.stack(rows)


def test_each_checkpoint_has_the_features_of_its_own_encoder(client, encoder, service, home):
    """Of several that are registered; and who registers another one loses no features."""
    pictures = {image: image_encoders.photo(30 + place) for place, image in enumerate(IMAGES)}
    _added(client, "both", pictures)
    models = {0: upload(client, checkpoint(features=1280, encoder=encoder))}
    first = _submitted(client, models[0], "both/test").json()
    path = image_encoders.write(home / "second.safetensors", seed=1)
    registered = assets.add_asset("image-encoder", path, AssetFolders(home))["image-encoder"]
    second = FeatureEncoder(name="random 1", digest=f"sha256:{registered.sha256}")
    models[1] = upload(client, checkpoint(features=1280, encoder=second))
    other = _submitted(client, models[1], "both/test").json()
    assert (first["status"], other["status"]) == ("succeeded", "succeeded")
    found = [_tasks(one)["features"] for one in (first, other)]
    assert [task["cached"] for task in found] == [False, False]
    for each, network in ((first, "e"), (other, "second")):
        rows = _rows(home, network, pictures)
        people = {image: ["w2 w3 w4", "w5 w6"] for image in IMAGES}
        own = encoder if network == "e" else second
        client.put(f"/v1/datasets/of-{network}", content=bundle_of(people, rows, encoder=own))
        by_rows = _submitted(client, each["checkpoint"], f"of-{network}/test").json()
        assert _values(by_rows) == _values(each)
    assert _values(first) != _values(other)
    again = upload(client, checkpoint(seed=2, features=1280, encoder=encoder))
    assert _tasks(_submitted(client, again, "both/test").json())["features"]["cached"] is True
    unknown = upload(client, checkpoint(features=1280, encoder=ENCODER))
    refused = _submitted(client, unknown, "both/test")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/dataset"
    for each in (encoder, second):
        assert f"{each.name} ({each.digest})" in refused.json()["detail"]
    assert "are registered: `prescore assets add image-encoder FILE`" in refused.json()["detail"]
    assert "the service's own `--home` or PRESCORE_HOME" in refused.json()["detail"]
    assert str(home) not in refused.text


def _values(evaluation):
    return {name: score["value"] for name, score in evaluation["scores"].items()}


def test_pictures_that_cannot_be_decoded_fail_the_scores_by_name_and_nothing_shifts(
    client, encoder
):
    cut = {**PICTURES, "1.jpg": PICTURES["1.jpg"][:-300], "3.jpg": b"\xff\xd8\xff"}
    _added(client, "cut", cut)
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


def test_where_pictures_or_the_encoder_are_missing_the_request_is_refused(client, encoder):
    some = {image: content for image, content in PICTURES.items() if image != "2.jpg"}
    _added(client, "some", some)
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    told = _submitted(client, model, "some/test")
    assert told.status_code == 422
    assert "some@v1/test has the pictures of 4 of its 5 images" in told.json()["detail"]
    other = upload(client, checkpoint(features=1280, encoder=ENCODER))
    told = _submitted(client, other, "some/test").json()["detail"]
    assert f"random 0 ({encoder.digest})" in told
    assert "registered: `prescore" in told
    assert "prescore assets add image-encoder FILE" in told
    wide = upload(client, checkpoint(features=7, encoder=encoder))
    told = _submitted(client, wide, "some/test").json()["detail"]
    assert told == "the checkpoint expects image features of size 7, the dataset's have 1280"


def test_of_a_datasets_versions_the_latest_with_pictures_and_the_same_captions_is_taken(
    client, encoder
):
    _added(client, "versions", PICTURES)
    assert _added(client, "versions", {})["version"] == "v2"
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    found = _submitted(client, model, "versions/test").json()
    assert found["dataset"]["version"] == "v1"
    named = _submitted(client, model, "versions@v2/test")
    assert "captions alone" in named.json()["detail"]


def test_pictures_are_added_to_a_datasets_images_from_a_folder(
    client, service, encoder, tmp_path, caplog
):
    """A new version with the same captions; the same pictures again make none."""
    _added(client, "later", {})
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
