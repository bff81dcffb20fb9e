"""Tokenizers with changes anywhere, opened and used in the sandbox: whatever the library does with
one, its process alone ends, within its limits, and what it answers is bounded.
"""

import base64
import json
import os
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import bounds, edits
from helpers import tokenizer_files
from service.contract import limits
from service.contract.errors import PrescoreError
from service.kernel import confinement
from workers.inference import tokenizer_child
from workers.inference.pieces import PieceTokens

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        confinement.explain_missing_sandbox() is not None, reason="this machine has no sandbox"
    ),
]

SECONDS = float(os.environ.get("PRESCORE_FUZZ_SECONDS", "600"))
FEW, ROUND = 10, 100  # inputs: each takes a process
TEXTS = ["a man rides a horse", "\u00e9\u0301\ufb03 \U0001f600 \u2581", "a" * 500]
# Normalizers of SentencePiece, whose table of bytes the library reads without looking.
_CHARSMAP = {"type": "Precompiled", "precompiled_charsmap": "ALQCAACEAAAAAACAAQAAgMz8AgC4BQ=="}
SEEDS = [json.loads(make().to_str()) for make in tokenizer_files.KINDS.values()]
SEEDS += [{**SEEDS[-1], "normalizer": _CHARSMAP}]
COMMON = settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


def _with_table(seed: dict, table: bytes) -> bytes:
    step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}
    return json.dumps({**seed, "normalizer": step}).encode()


TEXT = st.one_of(
    st.builds(
        edits.edited, st.sampled_from([json.dumps(each).encode() for each in SEEDS]), edits.EDITS
    ),
    st.builds(_with_table, st.sampled_from(SEEDS), st.binary(max_size=300)),
    st.builds(  # a table of right sizes
        lambda seed, size, rest: _with_table(seed, size.to_bytes(4, "little") + rest),
        st.sampled_from(SEEDS),
        st.sampled_from([0, 4, 8, 1024]),
        st.binary(min_size=8, max_size=1100),
    ),
)


def _use(data: bytes) -> str:
    """How it ended; raises where something else does than may."""
    text = data.decode(errors="replace")
    try:
        opened = tokenizer_child.open_tokenizer(text, "tokenizer.json", 100_000, "required")
    except PrescoreError as error:
        return _name_end(error)
    try:
        pieces = PieceTokens(opened, 100_000, 0, 1, 10_000)
        for one in pieces.encodings(TEXTS):
            assert len(pieces.text(one.ids)) <= 12 * limits.CAPTION * len(TEXTS)
    except PrescoreError as error:
        return _name_end(error)
    finally:
        opened.close()
    return "used"


def _name_end(error: PrescoreError) -> str:
    assert len(error.detail) < 2000
    return "its process ended" if "the process" in error.detail else "refused"


def _held(ends: Counter[str]):
    def hold(data: bytes) -> None:
        with bounds.growing_little():
            ends[_use(data)] += 1

    return hold


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_a_right_tokenizer_is_used_and_a_wrong_table_harms_nobody(seed):
    end = _use(json.dumps(SEEDS[seed]).encode())
    assert end == "used" or seed == len(SEEDS) - 1


def test_what_is_made_up_ends_its_own_process_at_most():
    settings(COMMON, max_examples=FEW, derandomize=True)(given(TEXT)(_held(Counter())))()


@pytest.mark.slow
def test_what_is_made_up_for_long_ends_its_own_process_at_most():
    ends: Counter[str] = Counter()
    tried = settings(COMMON, max_examples=ROUND, derandomize=False)(given(TEXT)(_held(ends)))
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        tried()
    print(f"tokenizers: {dict(ends)} in {SECONDS:.0f} s")
    assert ends["used"]
    assert ends["refused"]
