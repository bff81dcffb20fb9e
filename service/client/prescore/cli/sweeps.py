"""prescore rank"""

import math
from collections.abc import Sequence
from typing import Annotated

import typer

from prescore import exit_codes
from prescore.cli import console, options, text
from prescore.cli.suggestions import GivenNames
from prescore.models import SweepRanking, SweepRun
from prescore.models.sweeps import SWEEP_COLUMNS


def _read_percent(written: str | None) -> float | None:
    """Read `10%` or `10` as a percent."""
    if written is None:
        return None
    try:
        percent = float(written.removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100:
        raise typer.BadParameter(f"--at: expected a percent such as 10%, found {written!r:.100}")
    return percent


@options.expand_groups
def rank(
    split: options.WholeSplit,
    *,
    label: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: a label of the sweep's runs; may be given many times."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Scores up to this part of each run's steps count. Default: what all runs have "
            "reached.",
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(help="The metric whose best final score decides.")
    ] = "cider_d",
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="The last step of each run. Default: its label steps, or as past trainings."
        ),
    ] = None,
    sure: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="The least probability to keep the best run.")
    ] = 0.95,
    average: Annotated[
        int, typer.Option(min=1, max=100, help="Checkpoints whose mean is a score.")
    ] = 1,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show which runs of a sweep can be stopped before their end.

    From evaluations with the labels run and step. Trainings on the split that
    have ended tell how well an early score foretells the final one. At most
    half of the runs are given up at once. Label a run that you stop: stopped=yes.

        prescore rank flickr8k/val --label sweep=7
        prescore rank flickr8k/val --label sweep=7 --at 10% --steps 3000
        prescore rank flickr8k/val --label sweep=7 --sure 0.99 --csv sweep.csv

    Exit 0: some can be stopped. 2: usage, or refused. 3: not yet, the reason is
    printed. 4: no answer from the service.
    """
    labels = console.parse_labels(label)
    if not labels:
        raise typer.BadParameter("--label: expected NAME=VALUE of the sweep's runs, found none")
    percent = _read_percent(at)
    with console.connect_client(connection, GivenNames(split, [target])) as client:
        ranking = client.rank(
            split, labels, target, at=percent, steps=steps, sure=sure, average=average
        )
        console.write_csv(csv_file, SWEEP_COLUMNS, (list(one.cells()) for one in ranking.runs))
    console.print_answer(ranking, _format_ranking, as_json=as_json)
    if ranking.not_yet is not None:
        raise typer.Exit(exit_codes.FAILED)


def _format_ranking(ranking: SweepRanking) -> list[str]:
    accuracy, pairs = text.format_number(ranking.accuracy), ranking.pairs
    decided = f"{accuracy} {text.format_interval(ranking.interval)} of {pairs} pairs"
    left_out = ", ".join(f"{many} with {reason}" for reason, many in ranking.left_out.items())
    facts = [
        ("on", str(ranking.dataset)),
        ("past", f"{ranking.past} trainings, recipes {ranking.groups}"),
        ("early score", ranking.metric or ""),
        ("its accuracy", decided if ranking.metric else ""),
        ("its error", text.format_number(ranking.error) if ranking.metric else ""),
        ("end", f"{ranking.usual_end:.12g}, as past trainings" if ranking.usual_end else ""),
        ("left out", left_out),
    ]
    lines = [ranking.sentence(), "", *text.align_facts(facts)]
    if not ranking.runs:
        return lines
    heading = ("run", "at", "early", f"final {ranking.target}", "95 %", "best", "advice")
    return [*lines, "", *text.align_rows([heading, *map(_format_run, ranking.runs)])]


def _format_run(run: SweepRun) -> Sequence[str]:
    return (
        *(run.run, f"{run.percent:.3g} %", text.format_number(run.early)),
        text.format_number(run.expected if run.final is None else run.final),
        text.format_interval(run.interval) or "-",
        "-" if run.best is None else f"{run.best:.1%}",
        f"{run.advice or '-'}{', unlike the past' if run.is_covered is False else ''}",
    )
