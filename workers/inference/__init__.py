"""Captioners: their checkpoints, vocabularies, scores of references (columns) and decoding."""
