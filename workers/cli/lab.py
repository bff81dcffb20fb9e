"""`prescore lab`: train captioners to try Prescore with, and study their scores."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prescore.cli.options import file_to_write
from service.contract import settings
from service.contract.errors import RequestRefused
from service.contract.wording import count_noun
from workers.cli.console import (
    AsJson,
    JsonOut,
    Out,
    catch_interrupts,
    folder_to_write,
    print_json,
    print_lines,
    report_errors,
    show_progress_steps,
)

if TYPE_CHECKING:
    from workers.lab.training import TrainingEpoch

lab = typer.Typer(
    help="Train captioners to try Prescore with, and study their scores.", no_args_is_help=True
)


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

    with report_errors(), catch_interrupts() as heed, show_progress_steps(heed) as steps:
        steps.begin("words and features")
        run = training_runs.prepare_training(
            bundle,
            architecture=architecture,
            sizes={"cell": cell, "size": size, "layers": layers, "heads": heads},
            at_least=at_least,
            splits=(train_split, val_split),
            device=device or settings.load_settings().device,
        )
        out.mkdir(parents=True, exist_ok=True)
        progress = steps.begin("epoch 0")

        def report(done: int, total: int) -> None:
            progress(done, total)

        for epoch in run.train(epochs=epochs, batch=batch, seed=seed, progress=report):
            path = training_runs.save_epoch(out, epoch)
            steps.tell(_epoch_line(epoch, path))
            progress = steps.begin(f"epoch {epoch.number + 1}")


def _epoch_line(epoch: "TrainingEpoch", path: Path) -> str:
    loss = f"{epoch.loss:.3f}" if epoch.number else "-"  # of the untrained model there is none
    return (
        f"epoch {epoch.number:3}  loss {loss}  "
        f"validation perplexity {epoch.validation_perplexity:.2f}  "
        f"{epoch.seconds:.0f} s  {path}"
    )


@lab.command()
def study(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Tables of rows."),
    ],
    top: Annotated[int, typer.Option(min=0, help="Print the best N pre-gen metrics.")] = 10,
    rows_out: Annotated[
        Path | None, file_to_write("Write the rows of all tables to one table.", "--rows")
    ] = None,
    as_json: AsJson = False,
    json_out: JsonOut = None,
    csv_out: Annotated[
        Path | None, file_to_write("Write every correlation to a CSV file.", "--csv")
    ] = None,
) -> None:
    """Correlate pre-gen with post-gen scores: the study of Tanti, Gatt and Muscat (2018).

    Each model's images are sorted by CIDEr-D and cut into 1 to 5 strata; R² over
    the 15 rows of all models says which images are described well. `rank`
    (Spearman's correlation of models over whole sets) says whether a metric knows
    which model is better. Metrics that are infinite in a row, or constant in a
    dataset, are left out. Tables are tab- or comma-separated, plain or gzipped:
    written by --rows, or the authors' own, whose filter0 is called miss0 here.

        prescore lab study data.txt.gz
        prescore lab study a.tsv b.tsv --csv study.csv

    Of checkpoints: `prescore submit runs/*.safetensors --dataset mine/test --bundle mine/
    --wait --here`, then `prescore correlations mine/test --compute --here`.

    Exit 0: studied. 2: usage, or refused.
    """
    from workers.bench.study import correlations, tables
    from workers.bench.study.rows import join_rows

    with report_errors():
        for path in files:
            if path.suffix == ".safetensors":
                raise RequestRefused(
                    f"expected a table of rows, found the checkpoint {path}: submit it, and "
                    "study it by `prescore correlations --compute`"
                )
        parts = [tables.read_rows_table(path) for path in files]
        if not parts:
            raise RequestRefused("found nothing to study")
        rows = join_rows(parts)
        found = correlations.correlate_scores(rows)
        if rows_out is not None:
            tables.write_rows_table(rows_out, rows)
        if json_out is not None:
            json_out.write_text(json.dumps(found, allow_nan=False) + "\n", "utf-8")
        if csv_out is not None:
            csv_out.write_text(tables.format_study_csv(found), "utf-8")
    if as_json:
        print_json(found)
    else:
        print_lines(*tables.format_study(found, top).split("\n"))
