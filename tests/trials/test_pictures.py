"""From a folder of pictures and captions to a score with two commands, by real workers."""

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import prescore
from helpers import image_encoders
from helpers.fleet import checkpoint
from service.contract.assets import AssetFolders
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.offline import assets

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")

TABLE = "image,caption\n" + "".join(
    f"{place}.{ending},w2 w3 w{4 + place}\n{place}.{ending},w5 w6\n"
    for place, ending in enumerate(("jpg", "png", "webp", "jpg"))
)
FORMS = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}
CONVERT = "prescore convert references captions.csv mine/ --images photos/"
SUBMIT = "prescore submit model.safetensors --dataset mine/test --bundle mine/ --wait"


@pytest.mark.slow
def test_a_folder_of_pictures_and_a_table_of_captions_are_scored_by_two_commands(fleet, tmp_path):
    path = image_encoders.write(tmp_path / "encoder.safetensors", seed=3)
    found = assets.add_asset("image-encoder", path, AssetFolders(fleet.home))["image-encoder"]
    encoder = FeatureEncoder(name="random 3", digest=f"sha256:{found.sha256}")
    (tmp_path / "model.safetensors").write_bytes(checkpoint(features=1280, encoder=encoder))
    (tmp_path / "captions.csv").write_text(TABLE)
    (tmp_path / "photos").mkdir()
    for row in TABLE.splitlines()[1:]:
        name = row.partition(",")[0]
        content = image_encoders.photo(int(name[0]), FORMS[name.partition(".")[2]])
        (tmp_path / "photos" / name).write_bytes(content)
    done = [
        _shell(command, fleet.url, tmp_path)
        for command in (CONVERT, f"{SUBMIT} --postgen bleu --json")
    ]
    evaluation = json.loads(done[1].stdout)
    assert evaluation["status"] == "succeeded"
    assert evaluation["warnings"] == []
    assert evaluation["tasks"][0]["name"] == "features"
    assert 0 <= evaluation["scores"]["bleu_1"]["value"] <= 1
    assert evaluation["scores"]["perplexity"]["value"] > 1


@pytest.mark.slow
def test_pictures_are_made_small_by_real_workers_while_who_looks_waits(fleet, tmp_path):
    """The client asks again until they are there; a wrong one is told, and the next is shown."""
    (tmp_path / "b" / "images").mkdir(parents=True)
    names = [f"{place}.jpg" for place in range(5)]
    for place, name in enumerate(names):
        content = image_encoders.photo(place, size=(1000, 500))
        (tmp_path / "b" / "images" / name).write_bytes(content[:-99] if place == 3 else content)
    rows = [{"image": name, "split": "test", "references": ["a b"]} for name in names]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "b" / "captions.jsonl").write_text(lines)
    with prescore.Client(fleet.url) as client:
        added = client.add_dataset("looked-at", tmp_path / "b")
        assert client.show_pictures(str(added)).pictures_shown
        content = client.image("looked-at", "0.jpg", 960)
        assert Image.open(io.BytesIO(content)).size == (960, 480)
        with pytest.raises(prescore.Refused, match=r"'3.jpg' .* cannot be decoded: .*truncated"):
            client.image("looked-at", "3.jpg")
        assert client.image("looked-at@v1", "4.jpg")


def _shell(command, url, folder):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PRESCORE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**clean, "PATH": path, "PRESCORE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
