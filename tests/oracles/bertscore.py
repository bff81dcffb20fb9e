"""BERTScore from its definition: a sentence at a time, in loops, on all layers of the whole model.

Provenance: written from the paper (Zhang et al. 2020, equations 1 to 4), independent of workers/.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

Token = tuple[int, np.ndarray]


class Model:
    """`prefix` is put before every sentence that is not empty (a blank, for RoBERTa)."""

    def __init__(self, folder: Path, layer: int = -1, prefix: str = "") -> None:
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        self.model: Any = transformers.AutoModel.from_pretrained(folder).eval()
        self.layer, self.prefix = layer, prefix

    def ids(self, sentence: str) -> list[int]:
        text = sentence.strip()
        return list(self.tokenizer(self.prefix + text if text else "")["input_ids"])

    def tokens(self, sentence: str) -> list[Token]:
        ids = self.ids(sentence)
        with torch.no_grad():
            states = self.model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        return list(zip(ids, states[self.layer][0].double().numpy(), strict=True))

    def is_special(self, token: int) -> bool:
        return token in (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)


def score(
    model: Model, caption: str, references: Sequence[str], all_references: Sequence[str] = ()
) -> tuple[float, float, float]:
    """Precision, recall, F1, each the best of the references; idf where there are all of them."""
    counts = Counter(token for text in all_references for token in set(model.ids(text)))

    def weight(token: int) -> float:
        if model.is_special(token):
            return 0.0
        if not all_references:
            return 1.0
        return math.log((len(all_references) + 1) / (counts[token] + 1))

    def mean(one: list[Token], other: list[Token]) -> float:
        total = sum(weight(token) for token, _ in one)
        best = [weight(token) * max(_cosine(x, y) for _, y in other) for token, x in one]
        return sum(best) / total

    found = []
    mine = model.tokens(caption)
    for reference in references:
        theirs = model.tokens(reference)
        if not any(weight(token) for token, _ in mine) or not any(weight(t) for t, _ in theirs):
            found.append((0.0, 0.0, 0.0))
            continue
        precision, recall = mean(mine, theirs), mean(theirs, mine)
        found.append((precision, recall, 2 * precision * recall / (precision + recall)))
    best = [max(values) for values in zip(*found, strict=True)]
    return best[0], best[1], best[2]


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))
