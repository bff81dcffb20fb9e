"""`prescore lab`: train captioners to try Prescore with, and study their scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.contract import settings
from service.contract.wording import count_noun
from workers.cli.console import (
    Out,
    catch_interrupts,
    folder_to_write,
    print_above,
    print_lines,
    report_errors,
    show_progress,
    show_progress_lines,
)
from workers.cli.study import study

if TYPE_CHECKING:
    from workers.lab.training import TrainingEpoch

lab = typer.Typer(
    help="Train captioners to try Prescore with, and study their scores.", no_args_is_help=True
)
lab.command()(study)


@lab.command()
def shapes(
    out: Out,
    images: Annotated[int, typer.Option(min=8, help="Images in all three splits.")] = 1200,
    seed: int = 0,
    places: Annotated[
        str | None,
        typer.Option(help="grid or regions: features of places. Default: one vector an image."),
    ] = None,
) -> None:
    """Make the shapes dataset: generated images with captions and features."""
    from workers.lab import shapes as dataset

    with report_errors():
        dataset.make_shapes(out, images, seed, places)
    print_lines(f"{out}: {count_noun(images, 'image')}")


@lab.command()
def train(
    bundle: Annotated[Path, typer.Argument(help="A dataset bundle with features.")],
    out: Annotated[Path, folder_to_write("The folder for checkpoints, one per epoch.")],
    architecture: Annotated[
        str,
        typer.Option(
            help="init, pre, par or merge; of places: soft_attention, adaptive_attention, "
            "bottom_up_top_down or transformer."
        ),
    ] = "merge",
    cell: Annotated[
        str | None,
        typer.Option(help="Of init, pre, par and merge: gru, torch_gru or lstm. Default: gru."),
    ] = None,
    size: Annotated[int, typer.Option(min=1, help="Units of the RNN, or of a layer.")] = 256,
    layers: Annotated[int | None, typer.Option(min=1, help="Of a transformer. Default: 2.")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="Of a transformer. Default: 4.")] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Epochs at most.")] = 100,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Captions per batch. Default: the recipe's.")
    ] = None,
    at_least: Annotated[
        int, typer.Option(help="Words seen less often in training become UNK.")
    ] = 5,
    train_split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    val_split: Annotated[str, typer.Option(help="Split for early stopping.")] = "val",
    seed: int = 0,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda:N.")] = None,
) -> None:
    """Train a captioner; writes epoch-NN.safetensors after every epoch.

    Stops at the first epoch with a worse validation perplexity. Ctrl-C stops it, and written files
    stay. Each checkpoint can be scored while the next one trains.

        prescore lab train flickr8k/ runs/merge --architecture merge --epochs 8
    """
    from workers.lab import training_runs

    with (
        report_errors(),
        catch_interrupts() as heed,
        show_progress("epoch 0") as (bar, task),
        show_progress_lines() as begin,
    ):
        begin("words and features")
        run = training_runs.prepare_training(
            bundle,
            architecture=architecture,
            sizes={"cell": cell, "size": size, "layers": layers, "heads": heads},
            at_least=at_least,
            splits=(train_split, val_split),
            device=device or settings.load_settings().device,
        )
        out.mkdir(parents=True, exist_ok=True)
        line = begin("epoch 0")

        def told(done: int, total: int) -> None:
            heed(done, total)
            line(done, total)
            bar.update(task, completed=done, total=total)

        for epoch in run.train(
            epochs=epochs,
            batch=batch,
            seed=seed,
            progress=told,
        ):
            path = training_runs.save_epoch(out, epoch)
            bar.update(task, description=f"epoch {epoch.number + 1}", completed=0)
            print_above(bar, _epoch_line(epoch, path))
            line = begin(f"epoch {epoch.number + 1}")


def _epoch_line(epoch: "TrainingEpoch", path: Path) -> str:
    loss = f"{epoch.loss:.3f}" if epoch.number else "-"  # of the untrained model there is none
    return (
        f"epoch {epoch.number:3}  loss {loss}  "
        f"validation perplexity {epoch.validation_perplexity:.2f}  "
        f"{epoch.seconds:.0f} s  {path}"
    )
