"""Benchmarks of the engine: each beside its baseline, in one run, as ratios. They judge nothing.

    sh tests/run.sh --bench                 print, and keep the figures in build/benchmarks/
    sh tests/run.sh --bench --record        the same, and replace the tables in README.md
    sh tests/run.sh --bench --postgen       the post-gen metrics alone
    sh tests/run.sh --bench --images 500    smaller and quicker
    sh tests/run.sh --bench --device cuda:0    everything that runs on a GPU, on this one (or cpu)
    sh tests/run.sh --bench --launches      launches and waits of a GPU, counted without one
    sh tests/run.sh --bench --pictures      features of pictures alone, of 1,000 images
    sh tests/run.sh --bench --transformers  captioners of transformers alone, of 8 images
    sh tests/run.sh --bench --adapters      adapters on a base that stays open, alone

The case has the size of COCO's test split (5,000 images, 25,000 captions, 10,000 words, LSTM of
512) and made-up weights and references: greedy captions of about ten words, whose first two or
three words the references share, as they do on COCO. Post-gen metrics take COCO's own references
where there are data.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

# As a worker's child has it (`workers/runtime/warm_child.py`), and before torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import adapters  # beside this file
import captions  # beside this file
import intervals  # beside this file
import launches  # beside this file
import pictures  # beside this file
import published_sizes  # beside this file
import vision_language  # beside this file
from baselines import authors_columns, authors_decoding  # beside this file
from case import Case, made_up  # beside this file
from rates import DeviceRates, Work  # beside this file
from rows import Row, record, seconds, table  # beside this file

from oracles import pregen as oracle
from workers.inference import decoding, prefix, scoring
from workers.metrics import pregen

_PUBLISHED_IMAGES = 8
_PICTURES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--device")
    parser.add_argument("--postgen", action="store_true")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--adapters", action="store_true")
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    device = torch.device(arguments.device or "cpu")
    machine = _machine(device)
    on = "" if device.type == "cpu" else f" on {device.type.upper()}"
    if arguments.launches:
        print(launches.tell(recorded=arguments.record))
        return
    if arguments.transformers or arguments.device:
        images = min(arguments.images, _PUBLISHED_IMAGES)
        rows = [
            *published_sizes.measure(images, device),
            *vision_language.measure(images, device),
        ]
        _tell(f"Transformers{on}", f"{machine}; {images} images.", rows, arguments.record)
    if arguments.transformers:
        return
    if arguments.adapters:
        _tell("Adapters", f"{machine}.", adapters.measure(str(device)), arguments.record)
        return
    if not arguments.postgen:
        images = min(arguments.images, _PICTURES)
        said = f"{machine}; {images} images of each size."
        _tell(f"Pictures{on}", said, pictures.measure(images, device), arguments.record)
    if arguments.pictures:
        return
    if not arguments.postgen:
        case = made_up(arguments.images, device)
        rows = [*_columns(case), *_walk(case), *_decoding(case), *_metrics(case)]
        _tell(device.type.upper(), f"{machine}; {case.describe()}.", rows, arguments.record)
    if arguments.device:
        return
    given = captions.given(arguments.images)
    said = f"{machine}; {given.describe()}."
    _tell("Post-gen metrics", said, captions.measure(given), arguments.record)
    if not arguments.postgen:
        said = f"{machine}; {arguments.images} images."
        _tell("Intervals", said, intervals.measure(arguments.images), arguments.record)


def _tell(heading: str, said: str, rows: Sequence[Row], recorded: bool) -> None:
    print(f"\n{heading}: {said}\n\n{table(rows)}", flush=True)
    folder = Path(__file__).resolve().parents[2] / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    figures = {"machine": said, "rows": [asdict(row) for row in rows]}
    (folder / f"{now}.json").write_text(json.dumps(figures, indent=1))
    if recorded:
        record(heading, f"{said}\n\n{table(rows)}")


def _columns(case: Case) -> list[Row]:
    rows = []
    plain = authors_columns(case)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        options = scoring.ScoringOptions(precision=precision)
        found: list[scoring.ProbabilityColumns] = []

        def task(options=options, found=found) -> None:
            found.append(
                scoring.compute_columns(case.model, case.features, case.references, options)
            )

        took = seconds(task)
        note = DeviceRates.measure(case.device, dtype).describe(Work.count(task), took)
        if precision == "fp32":
            exact = found[0]
        else:
            same = bool(((exact.rank == 0) == (found[0].rank == 0)).all())
            worst = float(np.abs(exact.logp - found[0].logp).max())
            decisions = f"rank-0 decisions {'identical' if same else 'DIFFER'}"
            note = f"{decisions}; log p within {worst:.1g}; {note}"
        rows.append(Row(f"columns {precision}", took, "the authors' way", plain, note))
    case.columns = exact
    return rows


def _walk(case: Case) -> list[Row]:
    found: list[np.ndarray] = []

    def task() -> None:
        found.append(prefix.walk_prefixes(case.model, case.features, case.references))

    took = seconds(task, 3)
    greedy = decoding.DecodingOptions(beam=1, min_words=0, unk=True)
    plain = seconds(lambda: decoding.decode_captions(case.model, case.features, greedy))
    hits = case.columns.rank == 0
    offsets = case.columns.caption_offsets
    wanted = [int(np.logical_and.accumulate(hits[a:b]).sum()) for a, b in pairwise(offsets)]
    share = DeviceRates.measure(case.device).describe(Work.count(task), took)
    note = f"equal to columns in {(found[0] == wanted).mean():.2%} of captions; {share}"
    return [Row("prefix walk", took, "plain greedy decoding (ours)", plain, note)]


def _decoding(case: Case) -> list[Row]:
    rows, rates = [], DeviceRates.measure(case.device)
    for name, options in (
        ("greedy", decoding.DecodingOptions(beam=1)),
        ("beam 3", decoding.DecodingOptions()),
    ):
        found: list[list[decoding.DecodedCaption]] = []

        def task(options=options, found=found) -> None:
            found.append(decoding.decode_captions(case.model, case.features, options))

        took = seconds(task)
        plain, share = authors_decoding(case, options, found[0])
        words = np.mean([len(caption.words) for caption in found[0]])
        note = f"{words:.1f} words a caption; {share:.0%} equal to the baseline's"
        note = f"{note}; {rates.describe(Work.count(task), took)}"
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


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0].split(":")[1].strip() if names else model
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    return f"{model}, {threads} threads, load {load:.1f} before, torch {torch.__version__}"


if __name__ == "__main__":
    main()
