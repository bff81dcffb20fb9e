"""One row for every tokeniser of captions and references.

The function is under the same name in `workers.metrics.tokens.TOKENIZERS`. Tokenisers of captioners
(how references become a model's words) are in `service.contract.formats.words`.
"""

from dataclasses import dataclass

USUAL = "ptb"


@dataclass(frozen=True)
class Tokenizer:
    """`signature`: its name in the signatures of scores. Probes accept every tokeniser."""

    signature: str
    is_scored: bool = True  # evaluations and trainings of metrics accept it


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
