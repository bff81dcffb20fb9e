"""A captioner run: its checkpoint, its words, its probabilities, its captions."""
