"""prescore captions"""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.runs import Id
from prescore.cli.targets import ids_of
from prescore.errors import InvalidArgument
from prescore.models import Caption
from prescore.names import hint
from prescore.plain_text import quoted

PAGE = 1000


@options.spread
def captions(
    id_: Id,
    *,
    sort: Annotated[
        str | None,
        typer.Option(help="A metric: the lowest scores first; with - before it, the highest."),
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="Only captions or images with this text.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many captions. Default: all.")
    ] = None,
    csv_file: options.Table = None,
    coco: Annotated[
        Path | None,
        options.file_to_write("Write all captions as COCO's results file, without scores."),
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Print each image's caption with its own scores.

        prescore captions ev_2f9c --sort cider_d --limit 20
        prescore captions ev_2f9c --sort=-meteor --search dog
        prescore captions ev_2f9c --csv captions.csv
        prescore captions ev_2f9c --coco results.json

    `results.json` is what `prescore submit` and COCO's tools read.

    Exit 0: printed. 2: usage, or refused, as while there are no captions.
    4: no answer from the service.
    """
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
        if coco is not None:
            written = json.dumps(client.captions_coco(id_), ensure_ascii=True)
            console.write(coco, f"{written}\n".encode())
        listing = client.captions(id_, page_size=PAGE)
        found = (one for one in listing if _has(one, search))
        shown = list(islice(found if sort is None else _sorted(found, sort), limit))
        metrics = _metrics(shown)
        if csv_file is not None:
            heading = ("image", "caption", *metrics)
            console.write_csv(csv_file, heading, (_csv_row(one, metrics) for one in shown))
    if as_json:
        console.show_json(*shown, many=True)
    elif coco is None:
        rows = [("image", "caption", *metrics), *(_row(one, metrics) for one in shown)]
        console.show(text.aligned(rows))


def _has(one: Caption, text_: str | None) -> bool:
    return text_ is None or text_.lower() in f"{one.image}\n{one.caption}".lower()


def _sorted(found: Iterable[Caption], sort: str) -> list[Caption]:
    name = sort.removeprefix("-")
    every = list(found)
    if every and name not in (known := _metrics(every)):
        expected = hint(name, known) or f"it has {', '.join(map(quoted, known)) or 'none'}"
        raise InvalidArgument(f"--sort: captions have no score {quoted(name)}: {expected}")
    sign = -1 if sort.startswith("-") else 1
    place: Callable[[Caption], float] = lambda one: sign * (one.scores.get(name) or 0.0)  # noqa: E731
    scored = [one for one in every if one.scores.get(name) is not None]
    return sorted(scored, key=place) + [one for one in every if one.scores.get(name) is None]


def _metrics(shown: Iterable[Caption]) -> list[str]:
    return list(dict.fromkeys(name for one in shown for name in one.scores))


def _row(one: Caption, metrics: Sequence[str]) -> tuple[str, ...]:
    return one.image, one.caption, *(text.number(one.scores.get(name)) for name in metrics)


def _csv_row(one: Caption, metrics: Sequence[str]) -> tuple[object, ...]:
    return one.image, one.caption, *(one.scores.get(name) for name in metrics)
