"""Captions to tokens, as the COCO caption code makes them. There is one answer for each caption,
whatever the caption holds.

The published wrapper joins captions with line breaks and splits the answer again; a caption that
holds a line break shifts all later ones to other images. Here a blank replaces every such character
before Java gets it, and the answers are counted.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS

from service.contract.metrics import tokenizers
from service.contract.metrics.derived_tables import DerivedTable
from workers.metrics.java.jvm import Jvm
from workers.progress import Progress, ignore_progress

Tokenizer = str  # a name in TOKENIZERS
Tokenize = Callable[[Sequence[str], Jvm, Progress], list[str]]  # texts -> tokens joined by blanks

# What CoreNLP 3.4.1 takes for a line break. It takes U+0085 for an ellipsis (Windows-1252).
_BREAKS = re.compile("[\n\r\v\f\u2028\u2029]")
_BATCH = 1000  # captions in one request: Java easily holds so many of 10,000 characters each
_PUNCTUATION = frozenset(PUNCTUATIONS)
_WORDS_AND_MARKS = re.compile(r"\w+(?:[-']\w+)*|[^\w\s]")
SIGNATURES: Mapping[Tokenizer, str] = DerivedTable(  # tokenisers as scores name them
    lambda: {name: row.signature for name, row in tokenizers.TOKENIZERS.items()},
    tokenizers.TOKENIZERS,
)


def _ptb(texts: Sequence[str], jvm: Jvm, progress: Progress) -> list[str]:
    """PTB's tokens in small letters, without those in the caption code's punctuation list."""
    plain = [_BREAKS.sub(" ", text) for text in texts]
    lines = jvm.call("ptb", plain, batch=_BATCH, progress=progress)
    return [
        " ".join(word for word in line.split(" ") if word not in _PUNCTUATION) for line in lines
    ]


def split_each(split: Callable[[str], Iterable[str]]) -> Tokenize:
    """A tokeniser that splits text by text and needs no Java."""
    return lambda texts, _jvm, _progress: [" ".join(split(text)) for text in texts]


TOKENIZERS: dict[Tokenizer, Tokenize] = {
    "ptb": _ptb,  # for English
    "none": split_each(str.split),  # captions are tokens already, separated by white space
    "character": split_each(lambda text: "".join(text.split())),  # every character but white space
    "regex": split_each(lambda text: _WORDS_AND_MARKS.findall(text.lower())),  # words, punctuation
}


def tokenize(
    texts: Sequence[str], tokenizer: Tokenizer, jvm: Jvm, *, progress: Progress = ignore_progress
) -> list[str]:
    """The tokens of each text, joined by blanks."""
    return TOKENIZERS[tokenizer](texts, jvm, progress)
