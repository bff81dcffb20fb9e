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
