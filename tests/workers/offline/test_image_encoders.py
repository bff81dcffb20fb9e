"""Several encoders of pictures are registered beside each other."""

import json

import pytest
from typer.testing import CliRunner

from helpers import image_encoders
from service.contract.assets import ASSETS, AssetFolders, find_image_encoder
from service.contract.assets import list_image_encoders as registered
from service.contract.errors import MetricUnavailable
from workers.cli.assets import assets as command
from workers.offline import assets, doctor


@pytest.fixture
def places(tmp_path):
    return AssetFolders(tmp_path / "home")


def _add(places, tmp_path, seed):
    path = image_encoders.write(tmp_path / f"{seed}.safetensors", seed)
    return assets.add_asset("image-encoder", path, places)["image-encoder"]


def test_each_is_found_by_its_sha256_and_listed_once(places, tmp_path):
    """Also one that an earlier version registered, which kept one, under the name alone."""
    found = [_add(places, tmp_path, 0)]
    assert [*json.loads((places.own / "registered.json").read_text())] == ["image-encoder"]
    found += [_add(places, tmp_path, seed) for seed in (1, 0)]
    assert found[0].sha256 == found[2].sha256
    assert {each.sha256 for each in registered(places)} == {each.sha256 for each in found}
    assert len(registered(places)) == 2
    for each in found:
        path = find_image_encoder(each.sha256, places).path
        assert path.read_bytes() == each.path.read_bytes()
    rows = assets.describe_asset(ASSETS["image-encoder"], places)
    assert sorted(row["sha256"] for row in rows) == sorted({each.sha256 for each in found})
    assert {row["status"] for row in rows} == {"available"}


def test_one_that_is_not_here_is_told_with_those_that_are(places, tmp_path):
    with pytest.raises(MetricUnavailable, match="found none here"):
        find_image_encoder("0" * 64, places)
    (row,) = assets.describe_asset(ASSETS["image-encoder"], places)
    assert row["status"] == "unavailable"
    found = [_add(places, tmp_path, seed) for seed in (0, 1)]
    with pytest.raises(MetricUnavailable, match="SHA-256 000000000000…") as told:
        find_image_encoder("0" * 64, places)
    assert all(f"{each.sha256:.12}…" in told.value.detail for each in found)


def test_one_whose_file_is_lost_or_changed_is_not_here_and_the_other_is(places, tmp_path):
    first, second = (_add(places, tmp_path, seed) for seed in (0, 1))
    first.path.write_bytes(first.path.read_bytes()[:-1] + b"x")
    assert [each.sha256 for each in registered(places)] == [second.sha256]
    second.path.unlink()
    assert registered(places) == []


def test_the_commands_take_a_home_and_say_which_one_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "usual"))
    path, other = image_encoders.write(tmp_path / "e.safetensors"), tmp_path / "other"
    runner = CliRunner()
    done = runner.invoke(command, ["add", "image-encoder", str(path), "--home", str(other)])
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[-1] == f"added to the home {other}"
    assert len(registered(AssetFolders(other))) == 1
    assert not (tmp_path / "usual").exists()
    usual = runner.invoke(command, ["add", "image-encoder", str(path)])
    assert f"added to the home {tmp_path / 'usual'}: services of another one" in usual.stderr
    listed = runner.invoke(command, ["list", "--home", str(other)])
    assert str(other / "assets/image-encoder-") in listed.stdout
    assert listed.stderr == f"searched in {other / 'assets'}\n"


def test_the_doctor_has_a_line_for_each_encoder_of_pictures_of_the_home(places, tmp_path):
    (none,) = doctor._encoders(places)
    assert (none.status, none.found) == ("ok", f"none is registered in {places.own}")
    assert "assets add image-encoder" in none.advice
    found = {_add(places, tmp_path, seed).sha256 for seed in (0, 1)}
    rows = list(doctor._encoders(places))
    assert {row.name for row in rows} == {"picture encoders"}
    assert all(any(sha256 in row.found for row in rows) for sha256 in found)
