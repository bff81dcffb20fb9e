"""Warnings on captions, of which many say the same: each kind once, with its images."""

from collections.abc import Iterable, Sequence

from prescore.counts import counted


def by_kind(
    warnings: Iterable[tuple[str, str, str | None]],
) -> dict[tuple[str, str], list[str | None]]:
    """The images of each (code, detail), from (code, detail, image)."""
    kinds: dict[tuple[str, str], list[str | None]] = {}
    for code, detail, image in warnings:
        kinds.setdefault((code, detail), []).append(image)
    return kinds


def where(images: Sequence[str | None]) -> str:
    """How many images a warning is of and the first; empty where it is of none."""
    if images[0] is None:
        return ""
    return f" ({counted(len(images), 'image')}, the first is {images[0]!r:.100})"


def rows(warnings: Iterable[tuple[str, str, str | None]]) -> list[tuple[str, str, str]]:
    """Code, image and detail of each kind; where several images have it, the detail says so."""
    return [
        (code, images[0] or "", detail)
        if len(images) == 1
        else (code, "", f"{detail}{where(images)}")
        for (code, detail), images in by_kind(warnings).items()
    ]
