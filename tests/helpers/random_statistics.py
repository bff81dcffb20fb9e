"""Random statistics of captions in the form of each family."""

import numpy as np

from workers.metrics import postgen
from workers.metrics.family import FamilyScores

FAMILIES = [name for name, functions in postgen.FAMILY_FUNCTIONS.items() if functions.corpus]


def statistics(family, images, seed=0):
    rng = np.random.default_rng(seed)
    shares = {name: rng.random(images) for name in _SHARES.get(family, (family,))}
    match family:
        case "bleu":
            lengths = rng.integers(4, 14, images)
            ngrams = np.maximum(0, lengths[:, None] - np.arange(4))
            return {
                "length": lengths * 1.0,
                "reference_length": rng.integers(4, 14, images) * 1.0,
                "ngrams": ngrams * 1.0,
                "matches": rng.integers(0, ngrams + 1) * 1.0,
            }
        case "meteor":
            return {
                "lengths": rng.integers(5, 14, (images, 4)) * 1.0,
                "matches": rng.integers(0, 3, (images, 4, 4)) * 1.0,
                "chunks": rng.integers(0, 4, images) * 1.0,
                "matched_words": rng.integers(2, 8, (images, 2)) * 1.0,
            }
        case "wmd" | "wmd_unit":
            measured = rng.random(images) < 0.9
            return {**shares, "measured": measured * 1.0}
        case "chair":
            mentions = rng.integers(0, 4, images)
            wrong = rng.integers(0, mentions + 1)
            return {
                "mentions": mentions * 1.0,
                "wrong": wrong * 1.0,
                "with_wrong": (wrong > 0) * 1.0,
                "captions": np.ones(images),
            }
    return shares


_SHARES = {
    "spice": ("f", "precision", "recall"),
    "spider": ("spice", "cider_d"),
    "wmd": ("similarity", "distance"),
    "wmd_unit": ("similarity", "distance"),
    "bertscore": ("bertscore", "precision"),
}


def scores(family, kept, signature="made up"):
    corpus = postgen.compute_corpus_scores(family, kept)
    rows = np.zeros(len(next(iter(kept.values()))))
    each = dict.fromkeys(corpus, rows)
    return FamilyScores(family, corpus, each, kept, dict.fromkeys(corpus, f"{family}|{signature}"))


def columns(images, seed, hits=0.5, zeros=0.0):
    """Random columns: log-probabilities, ranks, offsets of 1 to 7 captions an image."""
    rng = np.random.default_rng(seed)
    image_offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 8, images))])
    lengths = rng.integers(1, 16, image_offsets[-1])
    caption_offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = caption_offsets[-1]
    logp = -rng.exponential(2.0, tokens).astype(np.float32)
    logp[rng.random(tokens) < zeros] = -np.inf
    rank = np.where(rng.random(tokens) < hits, 0, rng.integers(1, 100, tokens))
    return logp, rank, caption_offsets, image_offsets
