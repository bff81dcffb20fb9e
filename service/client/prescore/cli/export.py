"""prescore export: finished runs for other tools; a captioner of PyTorch as a bundle, where the
other distribution is installed.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes
from prescore.cli import console, options
from prescore.cli.run_ids import find_run_id, is_run_id
from prescore.cli.suggestions import GivenNames
from prescore.client import Client
from prescore.client.local_service import INSTALL
from prescore.errors import InvalidArgument
from prescore.exports.every_eval_ever import UNKNOWN
from prescore.exports.finished_runs import RunReader
from prescore.exports.formats import WITH_SAMPLES, FormatName, write_runs
from prescore.models import Evaluation

MOST_RUNS = 1000
GROUP = "prescore.commands"  # of entry points; the other distribution's `export` writes bundles


def _check_place(context: typer.Context, path: Path | None) -> Path | None:
    """Refuse a place that cannot be written, before anything is read."""
    if path is None or context.params.get("format_") == "csv":
        return options.check_file_to_write(path)
    return options.check_folder_to_write(path)


@options.expand_groups
def export(
    target: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...|MODULE:FUNCTION",
            help="With --format: runs' ids, ev_..., labels that one run has, NAME=VALUE, or "
            "DATASET/SPLIT for all its runs. Without: a function of yours without arguments; it "
            "returns a `workers.export.Captioner`.",
        ),
    ],
    *,
    format_: Annotated[
        FormatName | None,
        typer.Option(
            "--format",
            is_eager=True,
            help="The tool to write for. Without it, a bundle is written.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=_check_place,
            help="The folder to write, new or empty; of csv the file, by default stdout; of "
            "mlflow by default the store of MLFLOW_TRACKING_URI.",
        ),
    ] = None,
    label: options.LabelFilter = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Export at most so many runs of DATASET/SPLIT.")
    ] = MOST_RUNS,
    pregen: Annotated[
        bool, typer.Option("--pregen", help="All pre-gen scores too, not the main ones alone.")
    ] = False,
    organization: Annotated[
        str, typer.Option(help="Of every-eval-ever: the organization that ran the evaluations.")
    ] = UNKNOWN,
    dataset: Annotated[
        Path | None,
        typer.Option(
            help="Of MODULE:FUNCTION: a bundle with the image features that the model was trained "
            "on."
        ),
    ] = None,
    connection: options.Connection,
) -> None:
    """Write finished runs for another tool; or, without --format, a captioner as a bundle.

        prescore export --format csv flickr8k/test --out scores.csv
        prescore export --format every-eval-ever ev_2f9c --organization us --out eee/
        prescore export --format inspect ev_2f9c ev_81d0 --out logs/
        prescore export --format mlflow flickr8k/val --label run=7 --out store/
        prescore export --format wandb flickr8k/val --label run=7 --out runs/

    Runs with the same label `run` and different labels `step` are one run of mlflow and
    wandb, with a history by step.

    Without --format, a captioner of PyTorch becomes an ONNX bundle, which is checked
    against its own modules. That runs your code here, and needs onnx and onnxscript:
    deploy/guide/bring-a-model.md says what to install.

        prescore export mine:captioner --out bundle/ --dataset flickr8k/

    Exit 0: written. 2: usage, or refused, as for runs that have not succeeded.
    4: no answer from the service.
    """
    if format_ is None:
        _write_bundle(target, out, dataset)
        return
    if dataset is not None:
        raise typer.BadParameter("--dataset belongs to MODULE:FUNCTION; name runs by DATASET/SPLIT")
    labels = console.parse_labels(label)
    with console.connect_client(connection, GivenNames(_find_split(target))) as client:
        reader = RunReader(client, all_pregen=pregen, with_samples=format_ in WITH_SAMPLES)
        evaluations = _find_evaluations(client, target, labels, limit)
        write_runs(format_, reader.read_runs(evaluations), out, organization)


def _is_split(target: str) -> bool:
    return "/" in target and "=" not in target and not is_run_id(target)


def _find_split(targets: Sequence[str]) -> str:
    return next(filter(_is_split, targets), "")


def _find_evaluations(
    client: Client, targets: Iterable[str], labels: dict[str, str], limit: int
) -> Iterator[Evaluation]:
    """Give each run once, in the order of the command."""
    if labels and not _find_split(list(targets)):
        raise InvalidArgument("--label: expected DATASET/SPLIT, whose runs it chooses")
    seen: set[str] = set()
    for target in targets:
        runs = (
            _list_evaluations(client, target, labels, limit)
            if _is_split(target)
            else [client.evaluation(find_run_id(client, target))]
        )
        for run in runs:
            if run.id not in seen:
                seen.add(run.id)
                yield run


def _list_evaluations(
    client: Client, dataset: str, labels: dict[str, str], limit: int
) -> list[Evaluation]:
    listing = client.evaluations(dataset=dataset, status="succeeded", labels=labels)
    runs = list(islice(listing, limit))
    if not runs:
        raise InvalidArgument(f"no run of {dataset} that has succeeded matches")
    if next(listing, None) is not None:
        console.print_note(f"{dataset} has more runs than --limit {limit}: the latest are exported")
    return runs


def _write_bundle(target: Sequence[str], out: Path | None, dataset: Path | None) -> None:
    """Call the command of the other distribution, which has the same name."""
    if len(target) != 1 or ":" not in target[0] or out is None:
        raise typer.BadParameter(
            "expected --format and runs, or MODULE:FUNCTION and --out; found no --format with "
            f"{', '.join(target)!r:.100}{'' if out else ' and no --out'}"
        )
    entries = entry_points(group=GROUP, name="export")
    if not entries:
        console.print_note("prescore export MODULE:FUNCTION needs packages that are not installed.")
        console.print_note(f"Install them from a clone of Prescore: {INSTALL}")
        raise typer.Exit(exit_codes.REFUSED)
    (entry,) = entries
    write_bundle: Any = entry.load()
    write_bundle(target[0], out, dataset)
