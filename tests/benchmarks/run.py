"""Benchmarks of the engine: each beside its baseline, in one run, as ratios. They judge nothing.

    sh tests/run.sh --bench                 print, and keep the figures in build/benchmarks/
    sh tests/run.sh --bench --record        the same, and replace this device's table in README.md
    sh tests/run.sh --bench --images 500    smaller and quicker; --device cuda:0 for a GPU

The case has the size of COCO's test split (5,000 images, 25,000 captions, 10,000 words, LSTM of
512) and made-up weights and references: greedy captions of about ten words, whose first two or
three words the references share, as they do on COCO.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import captions  # beside this file
import single  # beside this file
from baselines import authors_columns, authors_decoding, gensim_distances  # beside this file
from case import Case, made_up  # beside this file

from oracles import pregen as oracle
from workers import decoding, prefix, scoring
from workers.metrics import family, pregen, wmd

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"


@dataclass(frozen=True)
class Row:
    what: str
    seconds: float
    baseline: str
    baseline_seconds: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.baseline_seconds / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    device = torch.device(arguments.device)
    case = made_up(arguments.images, device)
    rows = [
        *_columns(case),
        *_walk(case),
        *_decoding(case),
        *_metrics(case),
        *_captions(arguments.images),
        *_distances(case),
        *_single(),
    ]
    table = _table(rows)
    print(f"\n{_machine(device)}; {case.describe()}\n\n{table}")
    _keep(rows, device)
    if arguments.record:
        _record(device, case, table)


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """The best of `repeat` runs."""
    best = float("inf")
    for _ in range(repeat):
        _synchronise()
        began = time.perf_counter()
        work()
        _synchronise()
        best = min(best, time.perf_counter() - began)
    return best


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _rate(device: torch.device, dtype: torch.dtype) -> float:
    """The machine's own matrix-product rate, multiply-adds a second, by torch's own `@`."""
    size = 2048 if device.type == "cpu" else 8192
    a = torch.randn(size, size, device=device).to(dtype)
    b = torch.randn(size, size, device=device).to(dtype)
    return size**3 / seconds(lambda: a @ b, 5)


def _columns(case: Case) -> list[Row]:
    rows = []
    plain = authors_columns(case)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        options = scoring.Options(precision=precision)
        rate = _rate(case.device, dtype)
        found: list[scoring.Columns] = []
        took = seconds(
            lambda options=options, found=found: found.append(
                scoring.columns(case.model, case.features, case.references, options)
            )
        )
        rate = (rate + _rate(case.device, dtype)) / 2
        floor = case.multiply_adds / rate
        if precision == "fp32":
            exact = found[0]
            note = f"{floor / took:.0%} of torch's own rate ({rate / 1e9:.0f} G multiply-adds/s)"
        else:
            same = bool(((exact.rank == 0) == (found[0].rank == 0)).all())
            worst = float(np.abs(exact.logp - found[0].logp).max())
            note = f"rank-0 decisions {'identical' if same else 'DIFFER'}; log p within {worst:.1g}"
        rows.append(Row(f"columns {precision}", took, "the authors' way", plain, note))
    case.columns = exact
    return rows


def _walk(case: Case) -> list[Row]:
    found: list[np.ndarray] = []
    took = seconds(lambda: found.append(prefix.walk(case.model, case.features, case.references)), 3)
    greedy = decoding.Options(beam=1, min_words=0, unk=True)
    plain = seconds(lambda: decoding.decode(case.model, case.features, greedy))
    columns = seconds(lambda: scoring.columns(case.model, case.features, case.references))
    hits = case.columns.rank == 0
    offsets = case.columns.caption_offsets
    wanted = [int(np.logical_and.accumulate(hits[a:b]).sum()) for a, b in pairwise(offsets)]
    note = f"equal to columns in {(found[0] == wanted).mean():.2%} of captions"
    return [
        Row("prefix walk", took, "plain greedy decoding (ours)", plain, note),
        Row("prefix walk", took, "columns fp32 (ours)", columns),
    ]


def _decoding(case: Case) -> list[Row]:
    rows = []
    for name, options in (("greedy", decoding.GREEDY), ("beam 3", decoding.Options())):
        found: list[list[decoding.Decoded]] = []
        took = seconds(
            lambda options=options, found=found: found.append(
                decoding.decode(case.model, case.features, options)
            )
        )
        plain, share = authors_decoding(case, options, found[0])
        words = np.mean([len(caption.words) for caption in found[0]])
        note = f"{words:.1f} words a caption; {share:.0%} equal to the baseline's"
        rows.append(Row(name, took, "whole prefix anew for each word", plain, note))
    return rows


def _metrics(case: Case) -> list[Row]:
    columns = case.columns
    arrays = (columns.logp, columns.rank, columns.caption_offsets, columns.image_offsets)
    took = seconds(lambda: pregen.scores(*arrays), 5)
    images = case.references.images // 10
    captions = columns.image_offsets[: images + 1]
    tokens = columns.caption_offsets[: captions[-1] + 1]
    part = (columns.logp[: tokens[-1]], columns.rank[: tokens[-1]], tokens, captions)
    loops = 10 * seconds(lambda: oracle.scores(*part))
    return [Row("all 672 metrics from columns", took, "nested loops (a tenth, x 10)", loops)]


def _captions(images: int) -> list[Row]:
    timed = captions.compare(captions.given(images), seconds)
    return [
        Row(f"{each.what}, second checkpoint", each.ours, "pycocoevalcap", each.theirs, each.note)
        for each in timed
    ]


def _distances(case: Case) -> list[Row]:
    """Word Mover's Distance of made-up vectors; captions are the next image's first references."""
    vectors = case.word_vectors()
    task = replace(case.captions(), vectors=vectors)
    found: list[family.Measured] = []
    took = seconds(lambda: found.append(wmd.family("wmd", unit=False).measure(task)), 3)
    plain, expected = gensim_distances(task, vectors.vectors)
    worst = float(np.abs(found[0].captions["wmd_distance"][: len(expected)] - expected).max())
    note = f"distances within {worst:.1g} of gensim's"
    return [Row("WMD", took, "gensim, pair by pair (a part, scaled)", plain, note)]


def _single() -> list[Row]:
    baseline = "brute force by pycocoevalcap (a part, scaled)"
    return [
        Row(each.what, each.ours, baseline, each.theirs, each.note)
        for each in single.compare(seconds)
    ]


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0].split(":")[1].strip() if names else model
    return f"{model}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _table(rows: list[Row]) -> str:
    lines = ["| | seconds | baseline | seconds | ratio | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | {row.seconds:.3g} | {row.baseline} | {row.baseline_seconds:.3g} "
        f"| {row.ratio:.3g} | {row.note} |"
        for row in rows
    ]
    return "\n".join(lines)


def _keep(rows: list[Row], device: torch.device) -> None:
    folder = HERE.parents[1] / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    figures = {"machine": _machine(device), "rows": [asdict(row) for row in rows]}
    (folder / f"{now}.json").write_text(json.dumps(figures, indent=1))


def _record(device: torch.device, case: Case, table: str) -> None:
    """Replaces the section of this kind of device."""
    heading = f"## {device.type.upper()}\n"
    before, _, after = README.read_text(encoding="utf-8").partition(heading)
    rest = after.split("\n## ", 1)[1:] if after else []
    section = f"{heading}\n{_machine(device)}; {case.describe()}.\n\n{table}\n"
    README.write_text("\n## ".join([before + section, *rest]), encoding="utf-8")


if __name__ == "__main__":
    main()
