"""From a folder of pictures and captions to a score with two commands, by real workers."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import image_encoders
from fleet import checkpoint
from service.contract.formats.checkpoint_header import Encoder
from service.contract.plan.assets import Places
from workers.offline import assets

pytest.importorskip("PIL", reason="pictures are decoded by Pillow")

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
    found = assets.add("image-encoder", path, Places(fleet.home))["image-encoder"]
    encoder = Encoder(name="random 3", digest=f"sha256:{found.sha256}")
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
    assert evaluation["works"][0]["name"] == "features"
    assert 0 <= evaluation["scores"]["bleu_1"]["value"] <= 1
    assert evaluation["scores"]["perplexity"]["value"] > 1


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
