"""Read and write checkpoints: the public name for other people's code."""

from workers.inference.checkpoints import read_checkpoint as read
from workers.inference.checkpoints import write_checkpoint as write

__all__ = ["read", "write"]
