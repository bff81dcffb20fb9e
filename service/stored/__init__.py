"""Checkpoints and datasets that users uploaded, and the garbage collection of blobs."""
