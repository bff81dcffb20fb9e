"""Read and write checkpoints: the public name for other people's code."""

from workers.inference.checkpoints import read, write

__all__ = ["read", "write"]
