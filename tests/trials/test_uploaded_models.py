"""T36: models of other programs, columns, pictures and a plug-in, computed by the real workers of a
fleet whose pieces share nothing but PostgreSQL, Redis and an S3-compatible store. Scores, captions
and small pictures are those of a service in this process.
"""

import io
import json
import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from helpers import (
    huggingface_folders,
    image_encoders,
    outside,
    plugin_packages,
    synthetic_pictures,
    tars,
    tokenizer_files,
)
from helpers import onnx_bundle_files as onnx_files
from helpers import torch_captioners as of_torch
from helpers.columns_files import WITH_WORDS, columns
from helpers.contract_files import line, tar, tar_entry
from helpers.fleet import bundle, bundle_of, checkpoint, digest, until, until_ended
from helpers.fleet_pieces import Pieces
from service.contract.assets import AssetFolders
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.engine import database, fleet_status
from service.engine.records import Records
from service.kernel import confinement
from workers.offline import assets
from workers.runtime.worker import record_plugins

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")

pytestmark = pytest.mark.slow  # a fleet; each form alone: tests/service/http

SEEN = 9
PHOTOS = 400  # features are computed by two tasks, small forms by seven
PIECES = {
    "janitor": "janitor",
    "metrics": "metrics",
    "first": "inference",
    "second": "inference",
}
PREPROCESSING = {"size": {"height": 8, "width": 6}, "resample": 2}


class Registered:
    """An encoder of pictures, as each machine registers it, and a package with a plug-in."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        plugin_packages.install(self.site)
        self._file = image_encoders.write(folder / "encoder.safetensors")

    @property
    def variables(self) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join([str(self.site), os.environ.get("PYTHONPATH", "")])}

    def at(self, home: Path) -> FeatureEncoder:
        found = assets.add_asset("image-encoder", self._file, AssetFolders(home))["image-encoder"]
        return FeatureEncoder(name="random 0", digest=f"sha256:{found.sha256}")


@pytest.fixture(scope="module")
def registered(tmp_path_factory):
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    return Registered(tmp_path_factory.mktemp("registered"))


@pytest.fixture(scope="module")
def calm(registered, serve_here, tmp_path_factory):
    """A service in this process."""
    home = tmp_path_factory.mktemp("calm") / "home"
    home.mkdir()
    registered.at(home)
    with serve_here(home) as service, plugin_packages.beside(registered.site):
        record_plugins(service.records)
        yield service


@pytest.fixture(scope="module")
def service(registered, s3_server, tmp_path_factory):
    """A home for each piece; two workers for inference."""
    folder = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        parts = stack.enter_context(outside.or_skip(outside.parts(s3_server)))
        record, queue = parts.pop("PRESCORE_DATABASE_URL"), parts.pop("PRESCORE_REDIS_URL")
        homes = {name: folder / name for name in ("api", *PIECES)}
        for home in homes.values():
            home.mkdir()
            registered.at(home)
        pieces = Pieces(homes["api"], queue, record, **parts, **registered.variables)
        stack.callback(pieces.stop)
        pieces.start_api()
        for name, kind in PIECES.items():
            # without a converter: test_converter.py
            pieces.start(kind, PRESCORE_HOME=str(homes[name]), PRESCORE_CONVERTER="")
        records = Records(database.open_database(record))
        stack.callback(records.engine.dispose)
        until(lambda: _told(records), 60, "the workers' plug-ins")
        yield pieces


def _told(records):
    with records.reading() as connection:
        return fleet_status.read_plugins(connection)


def _state_dict(_folder, _encoder):
    files = {
        "model.pt": of_torch.saved(of_torch.made("init", "lstm")),
        "map.toml": of_torch.with_encoder(of_torch.map_of("init")).encode(),
        "vocabulary.json": json.dumps(of_torch.WORDS).encode(),
    }
    rng = np.random.default_rng(3)
    people = {f"{at}.jpg": [" ".join(rng.choice(of_torch.WORDS[7:], 4))] for at in range(12)}
    return tars.packed(files), bundle_of(people, _rows(12, of_torch.FEATURES))


def _onnx(folder, _encoder):
    people = {f"{at}.jpg": ["a dog runs fast", "a red dog", "zebra"] for at in range(6)}
    data = bundle_of(people, _rows(6, onnx_files.FEATURES))
    return tars.packed_folder(onnx_files.write(folder / "model")), data


def _onnx_of_pictures(folder, _encoder):
    onnx_files.of_pixels(folder / "model", tokenizer_files.byte_pieces(), PREPROCESSING, (3, 8, 6))
    return tars.packed_folder(folder / "model"), _seen(folder)


def _transformers(folder, _encoder):
    huggingface_folders.make(folder / "model", "vit-gpt2", trained=False)
    return tars.packed_folder(folder / "model"), _seen(folder)


def _plug_in(_folder, _encoder):
    return plugin_packages.checkpoint()[0], bundle(20)


def _computed_features(_folder, encoder):
    return checkpoint(features=1280, encoder=encoder), _photos()


FORMS = [_state_dict, _onnx, _onnx_of_pictures, _transformers, _plug_in, _computed_features]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.strip("_"))
def test_a_model_is_scored_as_by_a_service_in_this_process(
    form, service, calm, registered, tmp_path
):
    content, data = form(tmp_path, registered.at(tmp_path))
    found = [_evaluated(each, form.__name__.strip("_"), content, data) for each in (calm, service)]
    _agree(*found)
    assert found[0]["captions"]
    assert len(set(found[0]["pregen"].values())) > 50


def _evaluated(service, name, content, data):
    name = name.replace("_", "-")
    with service.client() as client:
        assert client.put(f"/v1/datasets/{name}", content=data).is_success
        place = f"/v1/checkpoints/{digest(content)}"
        assert client.put(place, content=content).is_success
        until(lambda: client.get(place).json()["state"] != "converting", 60, "the verification")
        described = client.get(place).json()
        assert (described["state"], described["problem"]) == ("ready", None)
        asked = {"checkpoint": digest(content), "dataset": f"{name}/test"}
        return _scored(client, {**asked, "postgen": ["bleu", "rouge_l"]})


def _agree(calm, found):
    """The last digits of a matrix product depend on where in memory its numbers are."""
    assert found["captions"] == calm["captions"]
    for of in ("scores", "pregen"):
        assert _infinite(found[of]) == _infinite(calm[of])
        rest = {name: value for name, value in calm[of].items() if value is not None}
        assert {name: found[of][name] for name in rest} == pytest.approx(rest, rel=1e-6, abs=1e-12)


def _infinite(scores):
    return {name for name, value in scores.items() if value is None}


def _scored(client, asked):
    """All scores, and the captions that were written."""
    asked = {**asked, "pregen": "all", "tokenizer": "none"}
    answer = client.post("/v1/evaluations", json=asked)
    assert answer.status_code in (201, 202), answer.text
    run = until_ended(client, answer.json()["id"], 120)
    assert run["status"] == "succeeded", run["tasks"]
    place = f"/v1/evaluations/{run['id']}"
    pregen = client.get(f"{place}/pregen").json()["scores"]
    assert len(pregen) > 300
    page = client.get(f"{place}/captions?limit=1000")
    items = page.json()["items"] if page.is_success else []
    return {
        "scores": {name: score["value"] for name, score in run["scores"].items()},
        "pregen": {name: score["value"] for name, score in pregen.items()},
        "captions": {item["image"]: item["caption"] for item in items},
    }


def test_columns_are_scored_as_by_a_service_in_this_process(service, calm):
    content = columns(base=WITH_WORDS)
    lines = line("a.jpg", ["a cat", "sat"]) + line("b.jpg", ["a cat sat"])
    found = []
    for each in (calm, service):
        with each.client() as client:
            data = tar(tar_entry(b"captions.jsonl", lines))
            assert client.put("/v1/datasets/columns", content=data).is_success
            place = f"/v1/columns/{digest(content)}"
            assert client.put(place, content=content).is_success
            found.append(_scored(client, {"columns": digest(content), "dataset": "columns/test"}))
    _agree(*found)


def test_pictures_of_several_tasks_are_shown_as_by_a_service_in_this_process(service, calm):
    names = [f"{place}.jpg" for place in (0, 63, 64, PHOTOS - 1)]
    found = []
    for each in (calm, service):
        with each.client() as client:
            data = _photos()
            assert client.put("/v1/datasets/shown", content=data).is_success
            answer = client.patch("/v1/datasets/shown", json={"pictures_shown": True})
            assert answer.status_code == 200, answer.text
            found.append([_shown(client, name, size) for name in names for size in (320, 960)])
    assert found[1] == found[0]
    assert [Image.open(io.BytesIO(content)).size for content in found[0][::2]] == [(48, 40)] * 4
    assert len(set(found[0])) == len(names)  # a small picture is as large in both sizes


def _shown(client, name, size):
    def made():
        answer = client.get(f"/v1/datasets/shown/images/{name}?size={size}")
        assert answer.status_code in (200, 503), answer.text
        return answer.content if answer.is_success else None

    return until(made, 60, "a small form of the picture")


def _rows(images, size):
    return np.random.default_rng(3).normal(size=(images, size)).astype(np.float32)


def _photos():
    """As many as several tasks compute."""
    pictures = {f"{place}.jpg": image_encoders.photo(place) for place in range(PHOTOS)}
    lines = b"".join(line(name, ["w2 w3 w4", "w5 w6"]) for name in pictures)
    files = [tar_entry(f"images/{name}".encode(), data) for name, data in pictures.items()]
    return tar(tar_entry(b"captions.jsonl", lines), *files)


def _seen(folder):
    (folder / "seen").mkdir()
    synthetic_pictures.write_dataset(folder / "seen", SEEN)
    return tars.packed_folder(folder / "seen")
