"""One row for every tokeniser of captions and references.

Its function stands under the same name in `workers.metrics.tokens.TOKENIZERS`. How a captioner's
own words are made is another question: `service.contract.formats.words`.
"""

from dataclasses import dataclass

USUAL = "ptb"


@dataclass(frozen=True)
class Tokenizer:
    """`signature` is what scores name it by. Probes accept every tokeniser."""

    signature: str
    is_scored: bool = True  # evaluations accept it, and trainings of metrics


TOKENIZERS: dict[str, Tokenizer] = {
    "ptb": Tokenizer("ptb3.4.1"),
    "none": Tokenizer("none"),
    "character": Tokenizer("char", is_scored=False),
    "regex": Tokenizer("words+marks", is_scored=False),
}


def names() -> list[str]:
    return list(TOKENIZERS)


def scored() -> list[str]:
    return [name for name, row in TOKENIZERS.items() if row.is_scored]
