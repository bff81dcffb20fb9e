"""Scores the checkpoints of a training run while it goes on."""
