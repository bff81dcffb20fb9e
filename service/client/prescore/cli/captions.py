"""prescore captions"""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.run_ids import RunId, find_run_id
from prescore.errors import InvalidArgument
from prescore.models import Caption
from prescore.names import suggest_name
from prescore.plain_text import quoted

PAGE = 1000


@options.expand_groups
def captions(
    id_: RunId,
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
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        if coco is not None:
            results = json.dumps(client.captions_coco(id_), ensure_ascii=True)
            console.write_file(coco, f"{results}\n".encode())
        listing = client.captions(id_, page_size=PAGE)
        matches = (caption for caption in listing if _contains(caption, search))
        ordered = matches if sort is None else _sort_captions(list(matches), sort)
        shown = list(islice(ordered, limit))
        metrics = _list_metrics(shown)
        rows = ((each.image, each.caption, *map(each.scores.get, metrics)) for each in shown)
        console.write_csv(csv_file, ("image", "caption", *metrics), rows)
    if as_json or coco is None:
        console.print_answers(shown, _format_captions, as_json=as_json)


def _format_captions(captions: Sequence[Caption]) -> list[str]:
    metrics = _list_metrics(captions)
    rows = [
        (each.image, each.caption, *(text.format_number(each.scores.get(name)) for name in metrics))
        for each in captions
    ]
    return text.align_rows([("image", "caption", *metrics), *rows])


def _contains(caption: Caption, part: str | None) -> bool:
    return part is None or part.lower() in f"{caption.image}\n{caption.caption}".lower()


def _sort_captions(captions: Sequence[Caption], sort: str) -> list[Caption]:
    """Sort by a score, the lowest first, or with `-` before it the highest; others at the end."""
    name = sort.removeprefix("-")
    if captions and name not in (known := _list_metrics(captions)):
        expected = suggest_name(name, known) or f"it has {', '.join(map(quoted, known)) or 'none'}"
        raise InvalidArgument(f"--sort: captions have no score {quoted(name)}: {expected}")
    sign = -1 if sort.startswith("-") else 1

    def order(caption: Caption) -> tuple[bool, float]:
        score = caption.scores.get(name)
        return score is None, sign * (score or 0.0)

    return sorted(captions, key=order)


def _list_metrics(captions: Iterable[Caption]) -> list[str]:
    return list(dict.fromkeys(name for caption in captions for name in caption.scores))
