"""Scoring holds a chunk of logits, a batch of hidden states and the columns; nothing else grows."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource, sys
import numpy as np, torch
from builders import encoded, model, tensors
from workers.inference import scoring

torch.set_num_threads(1)
images = int(sys.argv[1])
captioner = model("init", "lstm", tensors("init", "lstm", 64, 5, 5000))
features = np.ones((images, 5), np.float32)
rng = np.random.default_rng(0)
references = encoded(rng.integers(1, 5000, (images, 5, 10)).tolist())
scoring.columns(captioner, features[:128], references.part(0, 128))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
scoring.columns(captioner, features, references)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def _extra_megabytes(images: int) -> float:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(images)],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": f"{TESTS / 'helpers'}:{TESTS.parent}",
            "OMP_NUM_THREADS": "1",
            "HOME": str(TESTS),
        },
    )
    return int(result.stdout) / 1024


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_captions():
    """Sixteen blocks after one: what stays is the columns, some 30 bytes a token while made."""
    captions = 16 * 128 * 5
    columns = captions * 11 * 60 / 1e6
    assert _extra_megabytes(16 * 128) < columns + 25
    whole_matrix = captions * 11 * 5000 * 4 / 1e6
    assert whole_matrix > 2000
