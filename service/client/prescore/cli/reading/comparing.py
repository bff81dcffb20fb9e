"""prescore compare"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.nearly import Meant
from prescore.cli.runs import Id
from prescore.cli.targets import ids_of
from prescore.models import Compared, Comparison, Moved

_COLUMNS = ("metric", "a", "b", "difference", "low", "high", "p", "minimum_detectable")
_HEADING = ("", "a", "b", "a - b", "95 %", "p", "detectable")


@options.spread
def compare(
    a: Id,
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
    names = console.names(metrics)
    with console.connected(connection, Meant("", names or ())) as client:
        a, b = ids_of(client, a, b)
        found = client.compare(a, b, metrics=names, timeout=timeout)
        if csv_file is not None:
            console.write_csv(csv_file, _COLUMNS, _csv_rows(found))
    if as_json:
        console.show_json(found)
    else:
        console.show(_lines(found, images))
    if found.status != "succeeded":
        console.fail(f"{found.id} {found.status}{_why(found)}")


def _why(found: Comparison) -> str:
    reasons = [each.error.detail for each in found.tasks if each.error]
    return f": {reasons[0]}" if reasons else ""


def _lines(found: Comparison, images: int) -> list[str]:
    rows = [_HEADING, *(_row(name, each) for name, each in found.scores.items())]
    return [
        *text.aligned([("a", found.a), ("b", found.b), ("on", str(found.dataset))]),
        *text.aligned(rows),
        *(line for image in found.images[:images] for line in _image(image)),
    ]


def _image(moved: Moved) -> list[str]:
    gaps = [
        f"{name} {text.signed(each.difference)}"
        for name, each in moved.scores.items()
        if each.difference is not None
    ]
    rows = [("a", moved.a), ("b", moved.b)]
    return [*text.aligned([(moved.image, ", ".join(gaps))]), *text.aligned(rows, indent="  ")]


def _row(name: str, each: Compared) -> Sequence[str]:
    return (
        name,
        text.number(each.a),
        text.number(each.b),
        "-" if each.difference is None else text.signed(each.difference),
        text.bounds(each.interval),
        "-" if each.p is None else f"{each.p:.2g}",
        text.number(each.minimum_detectable),
    )


def _csv_rows(found: Comparison) -> Iterator[Sequence[object]]:
    for name, each in found.scores.items():
        low, high = each.interval or (None, None)
        chance = each.p, each.minimum_detectable
        yield name, each.a, each.b, each.difference, low, high, *chance
