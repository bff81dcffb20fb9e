"""prescore tokens"""

from collections.abc import Iterator
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.run_ids import RunId, find_run_id
from prescore.models import Token, TokenizedCaption, Tokens

_COLUMNS = ("reference", "text", "place", "word", "logp", "rank", "top", "top_logp", "entropy")
_HEADING = ("word", "logp", "rank", "entropy", "likeliest")


@options.expand_groups
def tokens(
    id_: RunId,
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
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        tokens = client.tokens(id_, image)
        rows = (
            (number, reference.text, *row)
            for number, reference in enumerate(tokens.captions)
            for row in _build_csv_rows(reference)
        )
        console.write_csv(csv_file, _COLUMNS, rows)
    console.print_answer(tokens, _format_tokens, as_json=as_json)


def _format_tokens(tokens: Tokens) -> Iterator[str]:
    for reference in tokens.captions:
        yield reference.text
        rows = [_HEADING, *map(_format_row, reference.tokens)]
        yield from text.align_rows(rows, indent="  ")


def _format_row(token: Token) -> tuple[str, ...]:
    logp = "-inf" if token.logp is None else f"{token.logp:.3f}"
    entropy = "" if token.entropy is None else f"{token.entropy:.3f}"
    return token.word or "", logp, str(token.rank), entropy, _list_likeliest(token)


def _list_likeliest(token: Token) -> str:
    """List the likeliest words, where the word itself is not the only one that is told."""
    if token.tops:
        return ", ".join(one.word for one in token.tops)
    return "" if token.top is None or token.top == token.word else token.top


def _build_csv_rows(reference: TokenizedCaption) -> Iterator[tuple[object, ...]]:
    for place, token in enumerate(reference.tokens):
        best = token.top, token.top_logp
        yield place, token.word, token.logp, token.rank, *best, token.entropy
