"""A large bundle is read a line at a time: memory does not grow with the file."""

import pytest

from helpers.contract_files import cost_of_reading, line, tar_block

pytestmark = pytest.mark.processes

LINES = 215
CAPTIONS = ["a man in a blue shirt stands in front of a building " * 150] * 122


def lines():
    """Some 200 MB in lines of almost a megabyte; what stands last is wrong."""
    text = line("@", CAPTIONS)
    for number in range(1, LINES):
        yield text.replace(b"@", b"%06d" % number, 1)
    yield b"no item"


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "tar"])
def test_200_mb_of_captions_are_read_to_the_last_line_in_bounded_memory(packed, tmp_path):
    path = tmp_path / ("bundle.tar" if packed else "captions.jsonl")
    with path.open("wb") as stream:
        stream.write(bytes(512) if packed else b"")
        size = sum(map(stream.write, lines()))
        assert size > 200 * 10**6
        if packed:
            stream.write(bytes(-size % 512 + 1024))
            stream.seek(0)
            stream.write(tar_block(b"captions.jsonl", size))
    source = path if packed else tmp_path
    name, text, _, grown = cost_of_reading("bundle", source, 64 * 10**6)
    assert (name, text[:10]) == ("InvalidBundle", f"line {LINES}: ")
    assert grown < 30 * 10**6
    path.unlink()
