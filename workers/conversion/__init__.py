"""Conversion: checkpoints of other programs become canonical, by a map that people write."""
