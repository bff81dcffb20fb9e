"""Pictures of a bundle as pixels: right ones, or a named error, and never another image's."""

import re

import numpy as np
import pytest

from helpers.tars import packed
from service.contract import limits
from service.contract.errors import SandboxUnavailable
from service.kernel import confinement
from workers.inference import pictures
from workers.inference.pictures import PictureDecodingFailure, PictureFit, children

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
from helpers.picture_files import noise, png, quarters, saved, turned  # noqa: E402  it needs Pillow, too

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_sandbox")]


QUARTERS = np.asarray(quarters())


def _folder(path, files):
    (path / "images").mkdir(parents=True)
    for name, content in files.items():
        (path / "images" / name).write_bytes(content)
    return path


def _tar(path, files):
    path.write_bytes(packed({f"images/{name}": content for name, content in files.items()}))
    return path


_RAMP = np.arange(256, dtype=">u2") * 257
_TRANSPARENT = Image.fromarray(np.dstack([QUARTERS, np.zeros((16, 32), np.uint8)]))
_SECOND = Image.new("RGB", (32, 16))
_RIGHT = {
    "plain.png": (saved(quarters(), "PNG"), QUARTERS),
    "named.jpg": (saved(quarters(), "PNG"), QUARTERS),
    "without": (saved(quarters(), "WEBP", lossless=True), QUARTERS),
    "palette.png": (saved(quarters("P"), "PNG"), np.asarray(quarters("P").convert("RGB"))),
    "grey.png": (
        saved(quarters("L"), "PNG"),
        np.repeat(np.asarray(quarters("L"))[..., None], 3, axis=2),
    ),
    "grey16.png": (
        png(256, 1, 16, 0, [_RAMP.tobytes()]),
        np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2),
    ),
    "rgb16.png": (
        png(256, 1, 16, 2, [np.repeat(_RAMP, 3).tobytes()]),
        np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2),
    ),
    "alpha.png": (saved(_TRANSPARENT, "PNG"), QUARTERS),
    "held.png": (saved(quarters(), "PNG", exif=turned(6)), np.rot90(QUARTERS, -1)),
    "mirrored.png": (saved(quarters(), "PNG", exif=turned(2)), QUARTERS[:, ::-1]),
    "odd_exif.png": (saved(quarters(), "PNG", exif=b"Exif\0\0MM\0*\xff\xff"), QUARTERS),
}
_LOSSY = {
    "photo.jpg": saved(quarters(), "JPEG", quality=95, subsampling=0),
    "print.jpg": saved(quarters("CMYK"), "JPEG", quality=95, subsampling=0),
    "progressive.jpg": saved(quarters(), "JPEG", quality=95, subsampling=0, progressive=True),
    "two.jpg": saved(
        quarters(), "MPO", save_all=True, append_images=[_SECOND], quality=95, subsampling=0
    ),
    "photo.webp": saved(quarters(), "WEBP", quality=100),
}
_NOISE = np.asarray(noise())
_WRONG = {
    "cut.jpg": (saved(Image.fromarray(_NOISE), "JPEG")[:-900], "cut off|truncated"),
    "cut.png": (saved(Image.fromarray(_NOISE), "PNG")[:-900], "truncated"),
    "cut.webp": (saved(Image.fromarray(_NOISE), "WEBP")[:-900], "cannot be decoded"),
    "text.jpg": (b"no picture", r"no picture in JPEG, PNG or WEBP"),
    "empty.jpg": (b"", r"no picture in JPEG, PNG or WEBP"),
    "other.gif": (saved(quarters(), "GIF"), r"no picture in JPEG, PNG or WEBP"),
    "moving.webp": (
        saved(quarters(), "WEBP", save_all=True, append_images=[_SECOND]),
        "animated, with 2 frames",
    ),
    "moving.png": (
        saved(quarters(), "PNG", save_all=True, append_images=[_SECOND]),
        "animated, with 2 frames",
    ),
    "bomb.png": (png(60_000, 60_000, 8, 2, []), "60,000 x 60,000 pixels, more than 100,000,000"),
}


@pytest.mark.long
def test_pixels_are_right_or_the_image_is_named_and_none_is_shifted(tmp_path):
    """All kinds in one bundle, a wrong one after each right one, from a folder and from a tar."""
    files = {name: content for name, (content, _) in _RIGHT.items()} | _LOSSY
    wrong = {name: content for name, (content, _) in _WRONG.items()}
    order = [name for pair in zip(files, [*wrong, *wrong], strict=False) for name in pair]
    order += ["absent.jpg", *[name for name in files if name not in order], "../outside.jpg"]
    every = files | wrong
    for bundle in (_folder(tmp_path / "folder", every), _tar(tmp_path / "tar", every)):
        for name, found in zip(order, pictures.read_pictures(bundle, order), strict=True):
            if name in _RIGHT:
                np.testing.assert_array_equal(found, _RIGHT[name][1], err_msg=name)
            elif name in _LOSSY:
                assert found.shape == QUARTERS.shape, name
                assert np.abs(found.astype(int) - QUARTERS)[2:6, 2:14].max() < 12, name
                assert np.abs(found.astype(int) - QUARTERS)[10:14, 20:30].max() < 12, name
            elif name in _WRONG:
                assert isinstance(found, PictureDecodingFailure), name
                assert found.image == name
                assert re.search(_WRONG[name][1], found.reason), found
            else:
                assert isinstance(found, PictureDecodingFailure)
                assert "images/" in found.reason
                assert found.image == name


def test_a_picture_gets_the_size_that_an_encoder_wants(tmp_path):
    """As Pillow's own functions, which encoders' processors call, make it."""
    whole = Image.fromarray(_NOISE[:40])  # 64 x 40
    bundle = _folder(tmp_path / "b", {"a.png": saved(whole, "PNG")})
    stretched = PictureFit("bicubic", stretched=(30, 20))
    (found,) = pictures.read_pictures(bundle, ["a.png"], fit=stretched)
    expected = whole.resize((30, 20), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(found, np.asarray(expected))
    middle = PictureFit("bilinear", shorter=20, cropped=(16, 18))
    (found,) = pictures.read_pictures(bundle, ["a.png"], fit=middle)
    expected = whole.resize((32, 20), Image.Resampling.BILINEAR).crop((8, 1, 24, 19))
    np.testing.assert_array_equal(found, np.asarray(expected))


def test_a_child_that_ends_early_leaves_the_rest_to_the_next(tmp_path, monkeypatch):
    names = [f"{place}.png" for place in range(5)]
    files = {
        name: saved(Image.new("RGB", (4, 4), (place, 0, 0)), "PNG")
        for place, name in enumerate(names)
    }
    bundle = _folder(tmp_path / "b", files)
    monkeypatch.setattr(children, "_MOST_BYTES", 50)  # one picture has 48
    found = list(pictures.read_pictures(bundle, names))
    assert [int(pixels[0, 0, 0]) for pixels in found] == [0, 1, 2, 3, 4]


def test_a_picture_at_which_the_child_is_stopped_is_named_and_the_others_go_on(
    tmp_path, monkeypatch
):
    """By a limit of the file's size, as by a signal or by the clock."""
    names = ["small.png", "large.png", "last.png"]
    sizes = {"small.png": (4, 4), "large.png": (400, 400), "last.png": (5, 5)}
    files = {name: saved(Image.new("RGB", size), "PNG") for name, size in sizes.items()}
    bundle = _folder(tmp_path / "b", files)
    monkeypatch.setattr(children, "_FILE_BYTES", 10_000)
    small, large, last = pictures.read_pictures(bundle, names)
    assert (small.shape, last.shape) == ((4, 4, 3), (5, 5, 3))
    assert isinstance(large, PictureDecodingFailure)


@pytest.mark.parametrize(
    "line", [b"[4, 5]\n", b"[-4, -4]\n", b"[1e9, 1]\n", b"{}\n", b"x\n", b"[true, true]\n", b""]
)
def test_what_the_child_has_written_is_judged(tmp_path, monkeypatch, line):
    """48 bytes of pixels, of which the lines say something else."""
    bundle = _folder(tmp_path / "b", {"a.png": b""})

    def written(operation, inputs, outputs, asked, **limits):
        outputs[0].write_bytes(bytes(48))
        outputs[1].write_bytes(line)

    monkeypatch.setattr(children.operations, "run_operation", written)
    (found,) = pictures.read_pictures(bundle, ["a.png"])
    assert isinstance(found, PictureDecodingFailure)
    assert "the process that decoded it" in found.reason


def test_a_file_of_too_many_bytes_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PICTURE_BYTES", 10)
    bundle = _folder(tmp_path / "b", {"a.png": saved(quarters(), "PNG")})
    (found,) = pictures.read_pictures(bundle, ["a.png"])
    assert isinstance(found, PictureDecodingFailure)
    assert "more than 10" in found.reason


def test_without_a_sandbox_nothing_is_decoded_but_by_the_setting(tmp_path, monkeypatch):
    bundle = _folder(tmp_path / "b", {"a.png": saved(quarters(), "PNG")})
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock"
    )
    with pytest.raises(SandboxUnavailable, match=r"no Landlock; .*PRESCORE_SANDBOX"):
        list(pictures.read_pictures(bundle, ["a.png"]))
    (found,) = pictures.read_pictures(bundle, ["a.png"], sandbox="off")
    np.testing.assert_array_equal(found, QUARTERS)
