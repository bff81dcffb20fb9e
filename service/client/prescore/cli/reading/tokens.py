"""prescore tokens"""

from collections.abc import Iterator
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.runs import Id
from prescore.cli.targets import ids_of
from prescore.models import Token, TokenizedCaption

_COLUMNS = ("reference", "text", "place", "word", "logp", "rank", "top", "top_logp", "entropy")


@options.spread
def tokens(
    id_: Id,
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="The image's name.")],
    *,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Print how likely the model finds each word of an image's references.

    logp is the natural logarithm of the word's probability, given the image and the
    words before it; rank 0 is the word that the model finds likeliest, which is shown
    last if it is another one. The entropy is there if `submit --entropy` asked for it.

        prescore tokens ev_2f9c 1000268201.jpg
        prescore tokens ev_2f9c 1000268201.jpg --csv tokens.csv

    Exit 0: printed. 2: usage, or refused, as for captions alone.
    4: no answer from the service.
    """
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
        found = client.tokens(id_, image)
        if csv_file is not None:
            rows = (
                (number, reference.text, *row)
                for number, reference in enumerate(found.captions)
                for row in _csv_rows(reference)
            )
            console.write_csv(csv_file, _COLUMNS, rows)
    if as_json:
        console.show_json(found)
        return
    for reference in found.captions:
        console.show([reference.text])
        rows_ = [("word", "logp", "rank", "entropy", "likeliest"), *map(_row, reference.tokens)]
        console.show(text.aligned(rows_, indent="  "))


def _row(token: Token) -> tuple[str, ...]:
    logp = "-inf" if token.logp is None else f"{token.logp:.3f}"
    entropy = "" if token.entropy is None else f"{token.entropy:.3f}"
    return token.word or "", logp, str(token.rank), entropy, _likeliest(token)


def _likeliest(token: Token) -> str:
    """The likeliest words, where the word itself is not the only one that is told."""
    if token.tops:
        return ", ".join(one.word for one in token.tops)
    return "" if token.top is None or token.top == token.word else token.top


def _csv_rows(reference: TokenizedCaption) -> Iterator[tuple[object, ...]]:
    for place, token in enumerate(reference.tokens):
        best = token.top, token.top_logp
        yield place, token.word, token.logp, token.rank, *best, token.entropy
