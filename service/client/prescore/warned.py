"""Warnings on captions: one row for all images that have the same code."""

from collections.abc import Iterable, Sequence

from prescore.counts import counted


def rows(warnings: Iterable[tuple[str, str, str | None]]) -> list[tuple[str, str, str]]:
    """Code, image and detail of each kind, from (code, detail, image). Warnings of images are of
    one kind if they have the same code; the detail then counts the images and names the first.
    """
    kinds: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
    for code, detail, image in warnings:
        kinds.setdefault((code, detail if image is None else None), []).append(
            (detail, image or "")
        )
    return [_row(code, found) for (code, _), found in kinds.items()]


def _row(code: str, found: Sequence[tuple[str, str]]) -> tuple[str, str, str]:
    detail, image = found[0]
    if len(found) == 1 or not image:
        return code, image, detail
    images = counted(len(found), "image")
    if len(dict(found)) == 1:
        return code, "", f"{detail} ({images}, the first is {image!r:.100})"
    return code, "", f"{images}, such as {image!r:.100}: {detail}"
