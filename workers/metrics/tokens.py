"""Captions to tokens, as the COCO caption code makes them: one answer a caption, whatever it holds.

The published wrapper joins captions with line breaks and splits the answer again; a caption with a
break of its own shifts all later ones to other images. Here every such character is a blank before
Java sees it, and what comes back is counted.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS

from workers.control import Stop, never
from workers.metrics.jvm import Jvm

Tokenizer = Literal["ptb", "none"]
SIGNATURES: Mapping[Tokenizer, str] = {"ptb": "ptb3.4.1", "none": "none"}  # as scores name them

# What CoreNLP 3.4.1 takes for a line break. Not U+0085: to it, that is an ellipsis (Windows-1252).
_BREAKS = re.compile("[\n\r\v\f\u2028\u2029]")
_BATCH = 1000  # captions in one request: at 10,000 characters each Java still holds them easily
_PUNCTUATION = frozenset(PUNCTUATIONS)


def tokenize(
    texts: Sequence[str], tokenizer: Tokenizer, jvm: Jvm, *, stop: Stop = never
) -> list[str]:
    """Tokens joined by blanks. `ptb`: small letters, without the caption code's punctuation list;
    `none`: the caption holds tokens already. Java starts for `ptb` alone.
    """
    if tokenizer == "none":
        return [" ".join(text.split()) for text in texts]
    lines = jvm.call("ptb", [_BREAKS.sub(" ", text) for text in texts], batch=_BATCH, stop=stop)
    return [
        " ".join(word for word in line.split(" ") if word not in _PUNCTUATION) for line in lines
    ]
