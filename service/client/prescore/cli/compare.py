"""prescore compare"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.run_ids import RunId, find_run_ids
from prescore.cli.suggestions import GivenNames
from prescore.models import Compared, Comparison, Moved

_COLUMNS = ("metric", "a", "b", "difference", "low", "high", "p", "minimum_detectable")
_HEADING = ("", "a", "b", "a - b", "95 %", "p", "detectable")


@options.expand_groups
def compare(
    a: RunId,
    b: Annotated[
        str, typer.Argument(metavar="EV", help="The second run; it must have the same images.")
    ],
    *,
    metrics: options.Metrics = None,
    images: Annotated[int, typer.Option(min=0, help="Show the N images that differ most.")] = 0,
    csv_file: options.Table = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Wait at most this many seconds.")
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Compare two runs: the difference of each metric, and whether it may be chance.

    The difference is a - b. p: how often chance alone makes a difference this large, in
    either direction. The 95 % interval has no 0 exactly where p is below .05. The last
    column is the smallest difference that these images would show (p < .05) in 4 cases
    of 5: a smaller difference may exist and not be detected.
    By default all metrics that both runs have are compared.

        prescore compare ev_2f9c ev_81d0
        prescore compare ev_2f9c ev_81d0 --metrics cider_d,perplexity --images 5
        prescore compare run=7 run=8

    Exit 0: compared. 2: usage, or refused, because the runs were not scored in the same
    way. 3: it failed or has not ended in time. 4: no answer from the service.
    """
    names = console.split_names(metrics)
    with console.connect_client(connection, GivenNames("", names or ())) as client:
        a, b = find_run_ids(client, a, b)
        comparison = client.compare(a, b, metrics=names, timeout=timeout)
        console.write_csv(csv_file, _COLUMNS, _build_csv_rows(comparison))
    console.print_answer(comparison, partial(_format_comparison, images=images), as_json=as_json)
    if comparison.status != "succeeded":
        reasons = [f": {task.error.detail}" for task in comparison.tasks if task.error]
        console.end_failed(f"{comparison.id} {comparison.status}{''.join(reasons[:1])}")


def _format_comparison(comparison: Comparison, images: int) -> list[str]:
    facts = [("a", comparison.a), ("b", comparison.b), ("on", str(comparison.dataset))]
    rows = [_HEADING, *(_format_row(name, each) for name, each in comparison.scores.items())]
    return [
        *text.align_rows(facts),
        *text.align_rows(rows),
        *(line for image in comparison.images[:images] for line in _format_image(image)),
    ]


def _format_image(moved: Moved) -> list[str]:
    gaps = [
        f"{name} {text.format_difference(each.difference)}"
        for name, each in moved.scores.items()
        if each.difference is not None
    ]
    rows = [("a", moved.a), ("b", moved.b)]
    return [*text.align_rows([(moved.image, ", ".join(gaps))]), *text.align_rows(rows, indent="  ")]


def _format_row(name: str, each: Compared) -> Sequence[str]:
    return (
        name,
        text.format_number(each.a),
        text.format_number(each.b),
        "-" if each.difference is None else text.format_difference(each.difference),
        text.format_interval(each.interval),
        "-" if each.p is None else f"{each.p:.2g}",
        text.format_number(each.minimum_detectable),
    )


def _build_csv_rows(comparison: Comparison) -> Iterator[Sequence[object]]:
    for name, each in comparison.scores.items():
        low, high = each.interval or (None, None)
        chance = each.p, each.minimum_detectable
        yield name, each.a, each.b, each.difference, low, high, *chance
