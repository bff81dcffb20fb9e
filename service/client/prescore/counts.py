"""Counts in sentences."""


def counted(count: int, noun: str) -> str:
    """Such as `1 image` and `2 images`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
