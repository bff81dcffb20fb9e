"""Corpus scores of captions, one for each image, by pycocoevalcap's own scorers; no Java."""

import contextlib
import io

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

BLEU = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")


def scores(captions, references, metrics=(*BLEU, "rouge_l", "cider_d")):
    """Of tokens joined by blanks."""
    said = {image: [caption] for image, caption in enumerate(captions)}
    people = dict(enumerate(references))
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        if set(BLEU) & set(metrics):
            found |= dict(zip(BLEU, Bleu(4).compute_score(people, said)[0], strict=True))
        if "rouge_l" in metrics:
            found["rouge_l"] = float(Rouge().compute_score(people, said)[0])
        if "cider_d" in metrics:
            found["cider_d"] = float(Cider().compute_score(people, said)[0])
    return {name: found[name] for name in metrics}
