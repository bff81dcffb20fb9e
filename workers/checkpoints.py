"""Checkpoints for other people's code, under the name that is promised to it."""

from workers.inference.checkpoints import read, write

__all__ = ["read", "write"]
