"""What we accept, the official library accepts, and sees the same in it; the reverse need not hold.

The oracle is the `safetensors` package itself, which the contract never imports.
"""

import io
import json
import struct

import pytest
import safetensors
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from helpers.contract_files import ITEM_BYTES, checkpoint, entry, features, safetensors_file
from service.contract import errors
from service.contract.formats import safetensors_header

BUSY = [HealthCheck.too_slow]  # says nothing where other processes take the time
COMMON = settings(max_examples=200, deadline=None, suppress_health_check=BUSY)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    """One file for all examples."""
    return tmp_path_factory.mktemp("official") / "file"


def ours(content):
    try:
        return safetensors_header.read_safetensors_header(io.BytesIO(content), len(content))
    except errors.InvalidCheckpoint:
        return None


def check(content, scratch):
    """Whether we accept it; if so, the library must, and see the same."""
    header = ours(content)
    if header is None:
        return False
    theirs = dict(safetensors.deserialize(content))
    assert theirs.keys() == header.tensors.keys()
    for name, tensor in header.tensors.items():
        assert (theirs[name]["dtype"], tuple(theirs[name]["shape"])) == (tensor.dtype, tensor.shape)
        place = slice(header.data_start + tensor.start, header.data_start + tensor.end)
        assert bytes(theirs[name]["data"]) == content[place]
    scratch.write_bytes(content)
    with safetensors.safe_open(scratch, framework="pt") as file:
        assert (file.metadata() or {}) == header.metadata
        for name, tensor in header.tensors.items():
            assert tuple(file.get_tensor(name).shape) == tensor.shape
    return True


def test_our_own_examples_are_accepted_by_both(scratch):
    for architecture in ("init", "pre", "par", "merge"):
        for cell in ("gru", "lstm"):
            assert check(checkpoint(architecture, cell), scratch)
    assert check(features(), scratch)


SHORT = safetensors_file(
    {"a": entry("F32", [2], 0, 8), "b": entry("F16", [0, 3], 8, 8), "__metadata__": {"é": "1"}},
    bytes(8),
)
ORIGINALS = (SHORT, features(), checkpoint())
PIECES = [
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"-", b".", b"e9", b"\0", b"\xc3", b"[0"),
    *(b"F16", b"BF16", b"__metadata__", b"\\u0061", b"\\ud83d", b"\\n", b"\xc3\xa9", b"0]"),
]


@st.composite
def mutated(draw):
    """A valid file with one to three edits of its header, small ones more often than large ones."""
    original = draw(st.sampled_from(ORIGINALS))
    length = struct.unpack("<Q", original[:8])[0]
    raw, data = bytearray(original[8 : 8 + length]), original[8 + length :]
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        at = draw(st.integers(0, len(raw) - 1))
        if raw[at : at + 1].isalnum() and draw(st.integers(0, 3)):
            raw[at : at + 1] = draw(st.sampled_from([b"0", b"1", b"2", b"8", b"a", b"F"]))
        elif raw[at] == ord(" "):
            raw[at : at + 1] = draw(st.sampled_from([b"", b"  ", b"\n", b"\t", b"\x0b", b"\xa0"]))
        else:
            raw[at : at + draw(st.integers(0, 2))] = draw(st.sampled_from(PIECES))
    change = draw(st.sampled_from([0] * 9 + [-1, 1, 2]))
    data = data[:change] if change < 0 else data + bytes(change)
    claimed = draw(st.sampled_from([len(raw)] * 9 + [length, 0, 2**63]))
    return safetensors_file(bytes(raw), data, length=claimed)


@pytest.mark.long
@given(content=mutated())
@COMMON
def test_whatever_we_accept_of_edited_files_the_official_library_accepts(content, scratch):
    check(content, scratch)


NUMBERS = st.sampled_from(
    [
        *("0", "1", "2", "3", "4", "8", "12", "-0", "-1", "1.0", "1e0", "00", "01", "0x1", "1_0"),
        *("+1", "true", "null", '"1"', "999999999999999999", "4611686018427387904"),
        *("9223372036854775808", "18446744073709551615", "18446744073709551616"),
    ]
)
NAMES = st.sampled_from(["a", "b", "c", "", "é", "\\u0061", "\\ud83d\\ude00", "\\n"])


def spoilt(right, wrong, share=15):
    """Mostly the right thing, so that a fair part of the headers is accepted."""
    return st.integers(0, share).flatmap(lambda k: wrong if k == 0 else st.just(right))


@st.composite
def generated(draw):
    """JSON text of a header, laid out well but for a few numbers, types, names and blanks."""
    parts, position = [], 0
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    for name in names:
        dtype = draw(st.sampled_from(sorted(ITEM_BYTES)))
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        size = ITEM_BYTES[dtype]
        for n in shape:
            size *= n
        dims = ",".join(draw(spoilt(str(n), NUMBERS)) for n in shape)
        start = draw(spoilt(str(position), NUMBERS))
        position += size
        end = draw(spoilt(str(position), NUMBERS))
        typed = draw(
            spoilt(dtype, st.sampled_from(["U8", "I32", "f32", "BOOL", "F\\u00332", "C64"]))
        )
        fields = [f'"dtype":"{typed}"', f'"shape":[{dims}]', f'"data_offsets":[{start},{end}]']
        fields = draw(st.permutations(fields))
        extra = draw(spoilt("", st.sampled_from([',"x":1', ',"dtype":"F32"', ","])))
        shown = draw(spoilt(name, NAMES | st.just("__metadata__")))
        parts.append(f'"{shown}":{{{",".join(fields)}{extra}}}')
    if draw(st.booleans()):
        good = '{"k":"v","":"\\u00e9"}'
        odd = st.sampled_from(['{"k":1}', '{"k":"v","k":"w"}', "null", "[]", '{"k":null}', "{}"])
        parts.insert(0, f'"__metadata__":{draw(spoilt(good, odd, share=4))}')
    blank = draw(st.sampled_from(["", " ", "\n", "\t\r ", "\u00a0", "\x0b", "\ufeff"]))
    separator = draw(st.sampled_from([",", ", ", ",\n", f",{blank}"]))
    text = "{" + separator.join(parts) + "}" + draw(st.sampled_from(["", "", " ", "\n", "\0", "x"]))
    surplus = draw(spoilt(0, st.integers(1, 4)))
    return safetensors_file(text.encode(), bytes(min(position, 10_000) + surplus))


@pytest.mark.long
@given(content=generated())
@COMMON
@example(content=safetensors_file({"a": entry("F32", [10**18 - 1, 10**18 - 1, 0], 0, 0)}))
@example(content=safetensors_file({"a": entry("F32", [0, 10**18 - 1, 10**18 - 1], 0, 0)}))
def test_whatever_we_accept_of_generated_headers_the_official_library_accepts(content, scratch):
    check(content, scratch)


@pytest.mark.long
@pytest.mark.parametrize("strategy", [mutated(), generated()])
def test_the_files_tried_are_not_all_refused(strategy, scratch):
    """A property whose condition is never met says nothing: count how often it is."""
    accepted = []

    @given(content=strategy)
    @settings(COMMON, max_examples=200, database=None, derandomize=True)
    def count(content):
        accepted.append(check(content, scratch))

    count()
    assert 0.03 < sum(accepted) / len(accepted) < 0.97


@pytest.mark.parametrize("padding", [1, 4])
def test_data_at_any_alignment_is_accepted_by_both(padding, scratch):
    raw = json.dumps({"a": entry("F32", [1], 0, 4)}).encode() + b" " * padding
    assert check(safetensors_file(raw, bytes(4)), scratch)
