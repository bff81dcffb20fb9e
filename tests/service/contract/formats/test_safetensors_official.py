"""What we accept, the official library accepts, and sees the same in it; the reverse need not hold.

The oracle is the `safetensors` package itself, which the contract never imports.
"""

import io

import pytest
import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.contract_files import ITEM_BYTES, checkpoint, entry, features, safetensors_file
from service.contract import errors
from service.contract.formats import safetensors_header

BUSY = [HealthCheck.too_slow]  # says nothing where other processes take the time


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


SHORT = safetensors_file(
    {"a": entry("F32", [2], 0, 8), "b": entry("F16", [0, 3], 8, 8), "__metadata__": {"é": "1"}},
    bytes(8),
)
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
def test_whatever_we_accept_the_official_library_accepts(scratch):
    """A property whose condition is never met says nothing: it is counted how often it is."""
    accepted = []

    @given(content=generated())
    @settings(max_examples=200, deadline=None, suppress_health_check=BUSY)
    def tried(content):
        accepted.append(check(content, scratch))

    tried()
    assert 0.03 < sum(accepted) / len(accepted) < 0.97


@pytest.mark.parametrize("content", [SHORT, features(), checkpoint(), checkpoint("merge", "lstm")])
def test_right_files_are_accepted_by_both(content, scratch):
    assert check(content, scratch)
