"""`prescore demo`: a service, a training run, and its checkpoints scored during it."""

import contextlib
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

import prescore

EPOCHS = 7
HOST = "127.0.0.1"
PREFIX, PERPLEXITY, CIDER = "mean_max_normcount_prefix0", "perplexity", "cider_d"
_WORKERS = (sys.executable, "-m", "workers")


@dataclass
class _CheckpointRow:
    """One checkpoint with its scores so far."""

    name: str
    id: str
    scores: dict[str, float] = field(default_factory=dict)
    status: str = "queued"


def run_demo(home: Path, *, once: bool, port: int | None = None) -> None:
    console = Console()
    home.mkdir(parents=True, exist_ok=True)
    console.print("Starting a service on this machine …")
    with _service(home, port or _free_port()) as url, prescore.Client(url) as client:
        rows = _score_a_run(console, client, home)
        _conclude(console, rows, home / "demo.svg")
        place = f"The service was at {url}; `prescore serve --home {home}` starts it again."
        if not once:
            place = f"The service is at {url} (its API: {url}/docs) until Ctrl-C; its data: {home}."
        console.print(place, soft_wrap=True)
        if not once:
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()


def _score_a_run(console: Console, client: prescore.Client, home: Path) -> list[_CheckpointRow]:
    """Train in another process, and submit each checkpoint as soon as it is written."""
    data, checkpoints = home / "shapes", home / "run"
    checkpoints.mkdir(exist_ok=True)
    for old in checkpoints.glob("*.safetensors"):
        old.unlink()
    subprocess.run([*_WORKERS, "lab", "shapes", str(data)], check=True)  # noqa: S603  our own program
    dataset = client.add_dataset("shapes", data)
    console.print(f"Dataset {dataset}; a captioner trains on it, {EPOCHS} epochs …")
    training = _training(data, checkpoints)
    rows: dict[str, _CheckpointRow] = {}
    try:
        with _live(console) as show:
            while training.poll() is None or not all(_is_over(row) for row in rows.values()):
                for path in sorted(checkpoints.glob("*.safetensors")):
                    if path.name not in rows:
                        rows[path.name] = _submit(client, path, f"{dataset}/test")
                for row in rows.values():
                    _refresh(client, row)
                show(list(rows.values()))
                time.sleep(0.3)
    finally:
        training.terminate()
        training.wait()
    if training.returncode not in (0, -signal.SIGTERM):
        raise RuntimeError(f"the training ended with {training.returncode}")
    return list(rows.values())


def _training(data: Path, checkpoints: Path) -> "subprocess.Popen[bytes]":
    options = ["--architecture", "merge", "--size", "64", "--batch", "64", "--at-least", "1"]
    command = [*_WORKERS, "lab", "train", str(data), str(checkpoints), *options]
    return subprocess.Popen(  # noqa: S603  our own program
        [*command, "--epochs", str(EPOCHS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _submit(client: prescore.Client, path: Path, dataset: str) -> _CheckpointRow:
    digest = client.upload_checkpoint(path)
    labels = {"run": "demo", "epoch": path.stem}
    return _CheckpointRow(path.stem, client.submit(dataset, checkpoint=digest, labels=labels).id)


def _refresh(client: prescore.Client, row: _CheckpointRow) -> None:
    if _is_over(row):
        return
    found = client.evaluation(row.id)
    row.status = found.status
    row.scores = {name: at.value for name, at in found.scores.items() if at.value is not None}


def _is_over(row: _CheckpointRow) -> bool:
    return row.status in ("succeeded", "failed", "canceled")


@contextmanager
def _live(console: Console) -> Iterator[Callable[[Sequence[_CheckpointRow]], None]]:
    """A live table on a terminal, else a line for each finished checkpoint."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:
            yield lambda rows: live.update(_table(rows))
        return
    told: set[str] = set()

    def tell(rows: Sequence[_CheckpointRow]) -> None:
        for row in rows:
            if _is_over(row) and row.name not in told:
                told.add(row.name)
                values = "  ".join(f"{name} {_shown(row, name)}" for name in _COLUMNS)
                console.print(f"{row.name}  {row.status}  {values}", soft_wrap=True)

    yield tell


_COLUMNS = {PREFIX: "prefix", PERPLEXITY: "perplexity", CIDER: "CIDEr-D", "bleu_4": "BLEU-4"}


def _table(rows: Sequence[_CheckpointRow]) -> Table:
    table = Table("checkpoint", *_COLUMNS.values(), "status")
    for row in rows:
        table.add_row(row.name, *(_shown(row, name) for name in _COLUMNS), row.status)
    return table


def _shown(row: _CheckpointRow, name: str) -> str:
    return f"{row.scores[name]:.3f}" if name in row.scores else "…"


def _conclude(console: Console, rows: Sequence[_CheckpointRow], plot: Path) -> None:
    done = [row for row in rows if {PERPLEXITY, CIDER} <= set(row.scores)]
    if len(done) < 3:
        failed = ", ".join(f"{row.name} {row.status}" for row in rows)
        raise RuntimeError(f"too few checkpoints were scored: {failed}")
    perplexity = [-row.scores[PERPLEXITY] for row in done]
    prefix = [row.scores[PREFIX] for row in done]
    cider = [row.scores[CIDER] for row in done]
    console.print(
        f"Over the run's {len(done)} checkpoints, rank correlation with CIDEr-D: "
        f"perplexity {spearman(perplexity, cider):+.2f}, {PREFIX} {spearman(prefix, cider):+.2f}.",
        soft_wrap=True,
    )
    plot.write_text(_svg([(-p, c) for p, c in zip(perplexity, cider, strict=True)]), "utf-8")
    console.print(f"The plot is {plot}", soft_wrap=True)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation, with mean ranks for equal values; 0 where one is constant."""
    ranks = [_ranks(a), _ranks(b)]
    if any(len(set(rank)) == 1 for rank in ranks):
        return 0.0
    return statistics.correlation(*ranks)


def _ranks(values: Sequence[float]) -> list[float]:
    below = [sum(other < value for other in values) for value in values]
    equal = [sum(other == value for other in values) for value in values]
    return [low + (same + 1) / 2 for low, same in zip(below, equal, strict=True)]


def _svg(points: Sequence[tuple[float, float]]) -> str:
    """A plot of CIDEr-D over perplexity, with a dot for each checkpoint."""
    xs, ys = zip(*points, strict=True)
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    dots = "".join(
        f'<circle cx="{60 + 500 * (x - left) / ((right - left) or 1):.1f}" '
        f'cy="{330 - 280 * (y - low) / ((high - low) or 1):.1f}" r="5" fill="#2563eb"/>'
        for x, y in points
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="620" height="400" '
        'font-family="sans-serif" font-size="13">'
        '<rect width="620" height="400" fill="white"/>'
        '<path d="M60 40V330H570" fill="none" stroke="#444"/>'
        f'<text x="300" y="375">perplexity ({left:.2f} to {right:.2f})</text>'
        f'<text x="20" y="25">CIDEr-D ({low:.2f} to {high:.2f})</text>{dots}</svg>\n'
    )


@contextmanager
def _service(home: Path, port: int) -> Iterator[str]:
    command = [sys.executable, "-m", "service", "serve", "--home", str(home), "--port", str(port)]
    with (home / "serve.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603  our own program
            command, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise RuntimeError(f"the service did not start; see {home / 'serve.log'}")
        yield f"http://{HOST}:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stdout.close()


def _free_port() -> int:
    """8000 if it is free, since the commands use it by default; else another port."""
    for port in (8000, 0):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((HOST, port))
            return int(listener.getsockname()[1])
    raise RuntimeError("no port is free")
