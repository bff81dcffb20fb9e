"""What a file with captions holds, judged as a service would judge it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prescore import InvalidArgument, warned
from prescore.files import captions
from service.contract import limits
from service.contract.api.captions import CaptionIn
from service.contract.errors import RequestRefused
from service.contract.formats import bundles, outputs
from service.contract.wording import told
from workers.offline.fitting import fitted
from workers.offline.sources import Source

_HEAD_BYTES = 4096
_SHOWN = 20  # kinds of warnings


def facts(path: Path, source: Source | None, *, subset: bool) -> dict[str, Any]:
    """Count captions, of a `source`'s images if there is one. Raises where something is wrong."""
    given = _read(path)
    if len(given) > limits.CAPTIONS:
        raise RequestRefused(f"expected at most {limits.CAPTIONS} captions, found {len(given)}")
    for number, one in enumerate(given, start=1):
        _check(number, one)
    found: dict[str, Any] = {"captions": len(given), "first_image": given[0]["image"]}
    pairs = [(one["image"], one["caption"]) for one in given]
    if source is None:
        warnings: Iterable[Mapping[str, Any]] = outputs.alone(pairs)
    else:
        arranged = fitted(pairs, source, subset=subset)
        found["images"] = f"{len(arranged.pairs)} of {len(source.items)} of {source}"
        warnings = arranged.warnings
    if told := _told(warnings):
        found["warnings"] = told
    return found


def _told(warnings: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each kind of warning, with the first image that it is of."""
    rows = warned.rows((one["code"], one["detail"], one["image"]) for one in warnings)
    lines = [": ".join(filter(None, row)) for row in rows]
    more = [f"and {len(lines) - _SHOWN} kinds more"] if len(lines) > _SHOWN else []
    return [*lines[:_SHOWN], *more]


def _read(path: Path) -> list[dict[str, str]]:
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise RequestRefused(f"expected captions in {path}, found an empty file")
    try:
        given = captions.read(path)
    except InvalidArgument:
        if b'"references"' in head and path.name == bundles.CAPTIONS:
            folder = path.absolute().parent
            raise RequestRefused(
                f"{path} has the references of a dataset bundle: check its folder, "
                f"`prescore check {folder}`"
            ) from None
        raise
    if not given:
        raise RequestRefused(f"expected captions in {path}, found none")
    return given


def _check(number: int, one: dict[str, str]) -> None:
    try:
        CaptionIn(**one)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RequestRefused(f"item {number}: {field}: {told(first)}") from None
