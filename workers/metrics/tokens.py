"""Captions to tokens, as the COCO caption code makes them: one answer a caption, whatever it holds.

The published wrapper joins captions with line breaks and splits the answer again; a caption with a
break of its own shifts all later ones to other images. Here every such character is a blank before
Java sees it, and what comes back is counted.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS

from workers.metrics.java.jvm import Jvm
from workers.progress import Stop, never

Tokenizer = Literal["ptb", "none", "character", "regex"]
SIGNATURES: Mapping[Tokenizer, str] = {  # as scores name them
    "ptb": "ptb3.4.1",
    "none": "none",
    "character": "char",
    "regex": "words+marks",
}

# What CoreNLP 3.4.1 takes for a line break. Not U+0085: to it, that is an ellipsis (Windows-1252).
_BREAKS = re.compile("[\n\r\v\f\u2028\u2029]")
_BATCH = 1000  # captions in one request: at 10,000 characters each Java still holds them easily
_PUNCTUATION = frozenset(PUNCTUATIONS)
_WORDS_AND_MARKS = re.compile(r"\w+(?:[-']\w+)*|[^\w\s]")
_PLAIN: Mapping[Tokenizer, Callable[[str], Iterable[str]]] = {
    "none": str.split,
    "character": lambda text: "".join(text.split()),
    "regex": lambda text: _WORDS_AND_MARKS.findall(text.lower()),
}


def tokenize(
    texts: Sequence[str], tokenizer: Tokenizer, jvm: Jvm, *, stop: Stop = never
) -> list[str]:
    """Tokens joined by blanks. `ptb`: small letters, without the caption code's punctuation list;
    `none`: the caption holds tokens already, between white space. For other languages than English
    `character`: every character but white space; `regex`: words and punctuation marks, in small
    letters. Java starts for `ptb` alone.
    """
    if tokenizer != "ptb":
        return [" ".join(_PLAIN[tokenizer](text)) for text in texts]
    lines = jvm.call("ptb", [_BREAKS.sub(" ", text) for text in texts], batch=_BATCH, stop=stop)
    return [
        " ".join(word for word in line.split(" ") if word not in _PUNCTUATION) for line in lines
    ]
