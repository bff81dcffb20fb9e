"""Pictures of all kinds, right ones and wrong ones, as people have them."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def saved(image, form, **options):
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def quarters(mode="RGB", size=(32, 16)):
    """Red, green / blue, white: no turn and no mirror image of it is the same."""
    width, height = size
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2], pixels[: height // 2, width // 2 :] = RED, GREEN
    pixels[height // 2 :, : width // 2], pixels[height // 2 :, width // 2 :] = BLUE, WHITE
    return Image.fromarray(pixels).convert(mode)


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def png(width, height, depth, colour, rows):
    """A PNG of raw rows; with fewer rows than it says, it is cut off or a bomb."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind, data):
    crc = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def noise(size=64):
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (size, size, 3), np.uint8))


_BLACK = Image.new("RGB", (32, 16))
_LARGE = quarters(size=(64, 64))
RIGHT = {  # of quarters(), but for losses
    "plain.png": saved(quarters(), "PNG"),
    "named.jpg": saved(quarters(), "PNG"),
    "print.jpg": saved(quarters("CMYK"), "JPEG", quality=95),
    "palette.png": saved(quarters("P"), "PNG"),
    "lossless.webp": saved(quarters(), "WEBP", lossless=True),
    "held.jpg": saved(quarters().rotate(90, expand=True), "JPEG", quality=95, exif=turned(6)),
}
GREYS = {  # of a value of 100
    "grey.png": saved(Image.new("L", (8, 8), 100), "PNG"),
    "grey16.png": png(8, 8, 16, 0, [b"\x64\xff" * 8] * 8),
    "clear16.png": saved(Image.new("I;16", (8, 8), 0x64FF), "PNG", transparency=1),
}
MOVING = {  # of which the first frame is quarters()
    "moving.webp": saved(quarters(), "WEBP", save_all=True, append_images=[_BLACK], lossless=True),
    "moving.png": saved(quarters(), "PNG", save_all=True, append_images=[_BLACK]),
}
WRONG = {  # with what is said of them
    "cut.jpg": (saved(_LARGE, "JPEG")[:-40], "truncated"),
    "begun.jpg": (b"\xff\xd8\xff", "no picture in JPEG, PNG or WEBP"),
    "bomb.png": (png(60_000, 60_000, 8, 2, []), "60,000 x 60,000 pixels"),
    "cut.webp": (saved(quarters(), "WEBP")[:-8], "cannot be decoded"),
}
