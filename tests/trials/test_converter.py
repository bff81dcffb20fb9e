"""A converter of its own beside a service of real processes: what dies with it is begun again. What
it opens becomes the same as without it: tests/workers/conversion/test_by_a_converter.py.
"""

import json

import pytest
import sqlalchemy as sa

import prescore
from helpers import converters, image_encoders
from helpers.fleet import Fleet, checkpoint, digest, until, upload
from helpers.tars import packed
from helpers.torch_captioners import WORDS, made, map_of, saved, with_encoder
from service.contract.assets import AssetFolders
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.engine.tables import attempts, task_rows
from service.kernel import confinement
from workers.offline import assets

pytestmark = pytest.mark.slow

MAP = with_encoder(map_of("init"))


@pytest.fixture(scope="module")
def converter(tmp_path_factory):
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    with converters.running(tmp_path_factory.mktemp("c")) as found:
        yield found


@pytest.fixture(scope="module")
def served(converter, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    encoder = image_encoders.write(home / "encoder.safetensors", seed=3)
    assets.add_asset("image-encoder", encoder, AssetFolders(home))
    with Fleet(home, PRESCORE_CONVERTER=str(converter.socket)) as fleet:
        yield fleet


def _package():
    return packed(
        {
            "model.pt": saved(made("init", "lstm")),
            "map.toml": MAP.encode(),
            "vocabulary.json": json.dumps(WORDS).encode(),
        }
    )


def _put(client, content):
    assert client.put(f"/v1/checkpoints/{digest(content)}", content=content).is_success
    return digest(content)


def _ready(client, identity):
    def over():
        found = client.get(f"/v1/checkpoints/{identity}").json()
        return found if found["state"] != "converting" else None

    found = until(over, 120, "the conversion's end")
    assert found["state"] == "ready", found["problem"]


def _row(fleet, kind):
    query = sa.select(task_rows).where(task_rows.c.kind == kind)
    with fleet.records.reading() as connection:
        return connection.execute(query.order_by(task_rows.c.created_at)).all()[-1]


def _outcomes(fleet, key):
    query = sa.select(attempts.c.outcome).where(attempts.c.task_key == key)
    with fleet.records.reading() as connection:
        return list(connection.execute(query.order_by(attempts.c.id)).scalars())


def _submit(client, served, name):
    path = assets.locate_asset("image-encoder", AssetFolders(served.home))
    encoder = FeatureEncoder(name="random 3", digest=f"sha256:{path.sha256}")
    model = upload(client, checkpoint(features=1280, encoder=encoder))
    request = {"dataset": f"{name}/test", "checkpoint": model, "pregen": ["perplexity"]}
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def _held(converter):
    """The converter's child, stopped when it has begun to confine itself."""
    (child,) = until(converter.children, 60, "a child of the converter")
    until(lambda: child.cwd() == "/", 20, "a child with its task")
    child.suspend()
    return child


def test_what_a_killed_converter_was_at_is_done_again_when_it_is_back(served, converter):
    with served.client() as client:
        identity = _put(client, _package())
        child = _held(converter)
        converter.kill()
        until(lambda: not child.is_running() or child.status() == "zombie", 5, "its child's end")
        converter.start()
        _ready(client, identity)
    row = _row(served, "checkpoint")
    assert (row.status, row.losses, row.failures, row.deaths) == ("done", 1, 0, 0)
    assert _outcomes(served, row.key) == ["converter_unavailable", "done"]


def test_a_canceled_task_ends_the_converters_child(served, converter, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(image_encoders.photo(77))
    bundles.write_bundle_folder(tmp_path, [BundleItem("a.jpg", "test", ("w2 w3",))])
    with prescore.Client(served.url) as other:
        name = str(other.add_dataset("canceled", tmp_path))
    with served.client() as client:
        evaluation = _submit(client, served, name)
        child = _held(converter)
        assert client.post(f"/v1/evaluations/{evaluation}/cancel").is_success
        until(lambda: not child.is_running(), 20, "the end of the converter's child")
    assert converter.process.is_running()
