"""What the sandbox adds to the start of a child. Prints, and judges nothing.

PYTHONPATH=. python tests/benchmarks/sandbox.py
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import hostile_child
from workers.sandbox import operations
from workers.sandbox.confinement import MECHANISMS

TIMES = 30


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    model = folder / "model.pt"
    torch.save({"weight": torch.ones(1000, 1000)}, model)
    empty = ("hostile_child:surroundings", [], [Path(hostile_child.__file__).parent])
    opens = ("workers.conversion.pytorch:convert_state_dict", [model], [])
    print("| a child that | in the sandbox | without | adds |\n|---|---|---|---|")
    for name, asked, times in (
        ("does nothing", empty, TIMES),
        ("converts a state dict of 4 MB", opens, TIMES // 6),
    ):
        inside, outside = _milliseconds(*asked, times)
        print(f"| {name} | {inside:.0f} ms | {outside:.0f} ms | {inside - outside:.1f} ms |")


def _milliseconds(operation, inputs, modules, times):
    """Medians, with the sandbox and without; by turns, so that both see the same load."""
    took = {frozenset(): [], MECHANISMS: []}
    for turn in range(times):
        for without, found in took.items():
            out = Path(tempfile.mkdtemp()) / f"{turn}"
            began = time.perf_counter()
            operations.run_operation(
                operation, inputs, [out], {"most_bytes": 10**9}, without=without, modules=modules
            )
            found.append((time.perf_counter() - began) * 1000)
    return tuple(map(statistics.median, took.values()))


if __name__ == "__main__":
    main()
