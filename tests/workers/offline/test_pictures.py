"""A folder of pictures becomes part of a bundle, or every lacking one is told."""

import pytest
from typer.testing import CliRunner

from service.contract.formats.bundles import validation
from workers.cli.convert import convert

JPEG = b"\xff\xd8\xff as JPEG begins"


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos" / "b").mkdir(parents=True)
    for name in ("a.jpg", "b/c.jpg", "unused.jpg"):
        (tmp_path / "photos" / name).write_bytes(JPEG)
    (tmp_path / "refs.csv").write_text("image,caption\na.jpg,a dog\nb/c.jpg,a cat\n")
    return tmp_path / "photos"


def _converted(tmp_path, photos, code=0):
    source, out = str(tmp_path / "refs.csv"), str(tmp_path / "out")
    told = CliRunner().invoke(convert, ["references", source, out, "--images", str(photos)])
    assert told.exit_code == code, told.output
    return told.output


def test_each_picture_that_an_image_names_is_copied(tmp_path, photos):
    assert '"pictures": 2' in _converted(tmp_path, photos)
    found = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.jpg")
    }
    assert found == {"images/a.jpg", "images/b/c.jpg"}
    assert validation.validate_bundle(tmp_path / "out").splits["test"]["pictures"] == 2
    _converted(tmp_path, tmp_path / "out" / "images")  # where they are already


def test_pictures_that_are_lacking_are_told_before_anything_is_written(tmp_path, photos):
    (photos / "a.jpg").unlink()
    (photos / "b" / "c.jpg").write_bytes(b"GIF89a")
    told = _converted(tmp_path, photos, code=2)
    for part in ("no picture of 2 of 2 images", "'a.jpg' (No such file", "'b/c.jpg' (expected a"):
        assert part in " ".join(told.split())
    assert not (tmp_path / "out").exists()


def test_an_image_cannot_name_a_file_outside_the_folder(tmp_path, photos):
    (tmp_path / "secret.jpg").write_bytes(JPEG)
    (tmp_path / "refs.csv").write_text("image,caption\n../secret.jpg,a dog\n")
    assert "no name of a file in it" in " ".join(_converted(tmp_path, photos, code=2).split())
