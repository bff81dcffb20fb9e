"""Small forms of a bundle's pictures: what the sandbox's child writes is judged."""

import hashlib
import io
import json
import tarfile

import pytest

from service.contract.formats import thumbnails as files
from workers.inference.pictures import PictureDecodingFailure, children, thumbnails

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
from helpers.picture_files import noise, quarters, saved, turned  # noqa: E402

pytestmark = pytest.mark.processes
FORM = saved(quarters(), "WEBP")
MORE = saved(quarters(), "WEBP", exif=turned(3))
LARGE = saved(noise(1000), "WEBP")


@pytest.fixture
def bundle(tmp_path):
    """Three images, the first and the last of which have a picture."""
    (tmp_path / "b" / "images").mkdir(parents=True)
    (tmp_path / "b" / "images" / "a.png").write_bytes(saved(noise(), "PNG"))
    (tmp_path / "b" / "images" / "c.png").write_bytes(saved(quarters(), "PNG"))
    return tmp_path / "b"


IMAGES = ["a.png", "b.png", "c.png"]


def test_pictures_are_known_by_the_sha256_of_their_bytes(bundle, tmp_path):
    contents = [(bundle / "images" / name).read_bytes() for name in ("a.png", "c.png")]
    expected = [hashlib.sha256(content).digest() for content in contents]
    assert list(thumbnails.hash_pictures(bundle, IMAGES)) == [expected[0], bytes(32), expected[1]]
    with tarfile.open(tmp_path / "tar", "w") as archive:
        archive.add(bundle / "images", "images")
    by_tar = list(thumbnails.hash_pictures(tmp_path / "tar", IMAGES))
    assert by_tar == [expected[0], bytes(32), expected[1]]


def test_each_image_has_forms_or_a_reason_in_its_order(bundle, needs_sandbox, tmp_path):
    made = list(thumbnails.make_thumbnails(bundle, IMAGES, sizes=(8, 40)))
    assert [each.image for each in made] == IMAGES
    first, absent, last = made
    sides = [
        [Image.open(io.BytesIO(one.forms[size])).size for size in (8, 40)] for one in (first, last)
    ]
    assert sides == [[(8, 8), (40, 40)], [(8, 4), (32, 16)]]
    assert isinstance(absent.forms, PictureDecodingFailure)
    assert "images/b.png" in absent.forms.reason


@pytest.mark.parametrize(
    "size", [(4000, 1), (1, 4000), pytest.param((3000, 2000), marks=pytest.mark.slow)]
)
def test_long_and_large_pictures_keep_their_shape(tmp_path, needs_sandbox, size):
    (tmp_path / "b" / "images").mkdir(parents=True)
    (tmp_path / "b" / "images" / "a.png").write_bytes(saved(Image.new("RGB", size), "PNG"))
    (made,) = thumbnails.make_thumbnails(tmp_path / "b", ["a.png"])
    for longest in files.SIZES:
        found = Image.open(io.BytesIO(made.forms[longest])).size
        expected = [max(1, round(side * longest / max(size))) for side in size]
        assert list(found) == expected


HOSTILE = {
    "no list": (FORM, "7"),
    "a form too few": (FORM, json.dumps([len(FORM)])),
    "one too many": (FORM * 3, json.dumps([len(FORM)] * 3)),
    "no numbers": (FORM * 2, json.dumps([str(len(FORM))] * 2)),
    "truth values": (FORM * 2, "[true, true]"),
    "negative": (FORM * 2, f"[-1, {len(FORM)}]"),
    "huge": (FORM * 2, f"[{len(FORM)}, {10**15}]"),
    "fewer bytes": (FORM * 2, f"[{len(FORM)}, {len(FORM) + 1}]"),
    "another format": (b"<svg>" * 100, "[250, 250]"),
    "metadata": (FORM + MORE, f"[{len(FORM)}, {len(MORE)}]"),
    "too large": (LARGE * 2, f"[{len(LARGE)}, {len(LARGE)}]"),
}


@pytest.fixture
def written(bundle, monkeypatch):
    """Forms of a picture of which the child has written this, and told that."""

    def take(content, line):
        def write(operation, inputs, outputs, asked, **limits):
            outputs[0].write_bytes(content)
            outputs[1].write_text(f"{line}\n")

        monkeypatch.setattr(children.operations, "run_operation", write)
        (made,) = thumbnails.make_thumbnails(bundle, ["a.png"])
        return made.forms

    return take


@pytest.mark.parametrize("what", HOSTILE)
def test_what_a_hostile_child_writes_is_no_form(written, what):
    found = written(*HOSTILE[what])
    assert isinstance(found, PictureDecodingFailure)
    assert "wrote something else than was asked" in found.reason


def test_the_same_child_may_write_what_is_asked(written):
    assert written(FORM * 2, f"[{len(FORM)}, {len(FORM)}]") == {320: FORM, 960: FORM}
