"""Files of small pictures, and which WebP is let in and out."""

import hashlib

import numpy as np
import pytest

from service.contract.errors import UnusableDataset
from service.contract.formats import thumbnails
from workers import tensor_files

Image = pytest.importorskip("PIL.Image", reason="pictures are made by Pillow")
from helpers.picture_files import noise, quarters, saved, turned  # noqa: E402

PICTURE = hashlib.sha256(b"a picture").hexdigest()
SMALL = saved(quarters(), "WEBP")
FORMS = {size: saved(noise(size), "WEBP") for size in (1, 2, 319, 320)}
WITH_MORE = {
    "alpha": saved(Image.new("RGBA", (8, 8), (9, 9, 9, 9)), "WEBP"),
    "exif": saved(quarters(), "WEBP", exif=turned(3)),
    "xmp": saved(quarters(), "WEBP", xmp=b"<x/>"),
    "profile": saved(quarters(), "WEBP", icc_profile=b"profile"),
    "lossless": saved(quarters(), "WEBP", lossless=True),
    "moving": saved(quarters(), "WEBP", save_all=True, append_images=[quarters("L")]),
    "jpeg": saved(quarters(), "JPEG"),
    "nothing": b"",
    "cut": SMALL[:-1],
    "longer": SMALL + b"<script>",
    "longer frame": SMALL[:4] + (len(SMALL)).to_bytes(4, "little") + SMALL[8:] + bytes(8),
    "another length": SMALL[:4] + (len(SMALL)).to_bytes(4, "little") + SMALL[8:],
    "no key frame": SMALL[:20] + bytes([SMALL[20] | 1]) + SMALL[21:],
    "no frame": SMALL[:23] + bytes(3) + SMALL[26:],
    "no width": SMALL[:26] + bytes(2) + SMALL[28:],
    "too wide": saved(quarters(size=(322, 8)), "WEBP"),
    "too high": saved(quarters(size=(8, 322)), "WEBP"),
}


def test_pixels_alone_are_a_form_and_its_sides_count():
    assert all(thumbnails.is_thumbnail(content, 320) for content in FORMS.values())
    assert [thumbnails.is_thumbnail(FORMS[320], size) for size in (319, 320, 960)] == [0, 1, 1]


@pytest.mark.parametrize("what", WITH_MORE)
def test_what_has_more_or_less_is_none(what):
    assert not thumbnails.is_thumbnail(WITH_MORE[what], 320)


def _written(path, tensors, undecoded):
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in tensors.items()}
    tensor_files.write_tensors(path, arrays, thumbnails.dump_undecoded(undecoded))
    return path


def test_a_form_is_read_by_its_picture_and_size_or_the_reason_is_told(tmp_path):
    tensors = {
        thumbnails.name_thumbnail(PICTURE, 320): SMALL,
        thumbnails.name_thumbnail(PICTURE, 960): FORMS[320],
    }
    path = _written(tmp_path / "x", tensors, {"f" * 64: "cut off"})
    assert thumbnails.read_thumbnail(path, PICTURE, 320) == SMALL
    assert thumbnails.read_thumbnail(path, PICTURE, 960) == FORMS[320]
    assert thumbnails.read_thumbnail(path, "f" * 64, 960) == "cut off"


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100, b"\x10" + bytes(7) + b"{}" + bytes(14), bytes(9)]
)
def test_a_damaged_file_is_told(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnusableDataset, match="damaged"):
        thumbnails.read_thumbnail(tmp_path / "x", PICTURE, 320)
    path = _written(tmp_path / "y", {thumbnails.name_thumbnail(PICTURE, 320): b"<html>" * 10}, {})
    for size in (320, 960):
        with pytest.raises(UnusableDataset, match="damaged"):
            thumbnails.read_thumbnail(path, PICTURE, size)


def test_digests_are_read_by_place(tmp_path):
    some = [hashlib.sha256(bytes([at])).digest() for at in range(5)]
    (tmp_path / "d").write_bytes(b"".join([*some[:3], bytes(32), *some[3:]]))
    digests = thumbnails.PictureDigests(tmp_path / "d")
    expected = [*(each.hex() for each in some[:3]), None, *(each.hex() for each in some[3:])]
    assert digests.some(0, 6) == expected
    assert digests.some(2, 4) == expected[2:4]
    assert digests.some(5, 64) == expected[5:]
    assert digests.some(6, 64) == []


def test_noise_at_the_largest_size_is_far_below_the_bound():
    assert len(saved(noise(960), "WEBP", quality=80)) * 4 < thumbnails.MOST_BYTES


def test_a_file_of_a_whole_block_is_read(tmp_path):
    """Its header has as many tensors as a block has forms."""
    from service.contract.plan.planning import THUMBNAILS_IMAGES

    names = [hashlib.sha256(bytes([at])).hexdigest() for at in range(THUMBNAILS_IMAGES)]
    tensors = {
        thumbnails.name_thumbnail(name, size): SMALL for name in names for size in thumbnails.SIZES
    }
    path = _written(tmp_path / "x", tensors, {})
    assert all(thumbnails.read_thumbnail(path, name, 960) == SMALL for name in names)
