"""Sentence vectors and RefScore from their definition: whole padded batches, all of the model.

Provenance: written from the description of mean pooling in the card of all-MiniLM-L6-v2 (the sum of
the tokens' last states under the attention mask, divided by the mask's sum, then of length 1);
independent of workers/.
"""

from collections.abc import Sequence

import numpy as np
import torch

from oracles import bertscore


class Model(bertscore.Model):
    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """One for each sentence, of length 1."""
        texts = [self.prefix + text.strip() if text.strip() else "" for text in sentences]
        given = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        given.pop("token_type_ids", None)
        with torch.no_grad():
            states = self.model(**given, output_hidden_states=True).hidden_states[self.layer]
        mask = given["attention_mask"].unsqueeze(-1).double()
        means = (states.double() * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(means, dim=1).numpy()


def score(model: Model, caption: str, references: Sequence[str]) -> float:
    """The highest cosine with a reference; 0 with a text that has no words."""
    vectors = model.vectors([caption, *references])
    cosines = [
        float(vectors[0] @ vector) if caption.strip() and reference.strip() else 0.0
        for reference, vector in zip(references, vectors[1:], strict=True)
    ]
    return max(cosines)
