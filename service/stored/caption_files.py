"""Files of captions: how one that has not been submitted fits a split, by the client's reader."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prescore.errors import InvalidArgument
from prescore.files import captions
from service.contract import limits
from service.contract.api.request_parts import CaptionsInput
from service.contract.errors import CaptionsRefused
from service.contract.formats import outputs
from service.contract.metrics import tokenizers
from service.stored.splits import ReferenceTexts, SplitFile

SHOWN_NAMES = 5  # of images that are missing or unknown
_INPUT: TypeAdapter[Any] = TypeAdapter(CaptionsInput)

Pair = tuple[str, str]  # an image's name or id, and a caption


def inspect_captions(path: Path, name: str, split: SplitFile, of: str) -> dict[str, Any]:
    """The captions in a file and their fit to a split. `name`: by which messages call the file;
    `of`: by which they call the split. CaptionsRefused where it cannot be read, or where no request
    may have such captions.
    """
    try:
        found = captions.read_captions_file(path)
    except InvalidArgument as error:
        raise CaptionsRefused(str(error).replace(str(path), name)) from None
    _check_bounds(name, found.captions)
    pairs = [(one["image"], one["caption"]) for one in found.captions]
    with split.places() as known:
        places = {image: known.get(image) for image, _ in pairs}
    unknown = list(dict.fromkeys(image for image, _ in pairs if places[image] is None))
    first, repeated = _part_repeated(pairs, places)
    return {
        "format": found.format,
        "captions": found.captions,
        "images": len(first),
        "of": len(split.items),
        "missing": _list_missing(split, first),
        "unknown": unknown[:SHOWN_NAMES],
        "unknown_count": len(unknown),
        "warnings": [*_find_oddities(first, split, of), *_warn_of_repeated(repeated)],
    }


def _check_bounds(name: str, given: Sequence[Mapping[str, str]]) -> None:
    """Raise for captions that no request may have, with the place of the first one."""
    if not given:
        raise CaptionsRefused(f"{name}: expected captions, found none")
    if len(given) > limits.CAPTIONS:
        many = f"{len(given):,}"
        raise CaptionsRefused(
            f"{name}: expected at most {limits.CAPTIONS:,} captions, found {many}"
        )
    try:
        _INPUT.validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at, field = first["loc"][0], first["loc"][-1]
        place = f"item {at + 1}" if isinstance(at, int) else "the file"
        raise CaptionsRefused(f"{name}, {place}: {field}: {first['msg']}") from None


def _part_repeated(
    pairs: Sequence[Pair], places: Mapping[str, int | None]
) -> tuple[dict[int, Pair], list[str]]:
    """The first caption of each place in the split, and the images that have another one."""
    first: dict[int, Pair] = {}
    repeated = []
    for pair in pairs:
        place = places[pair[0]]
        if place is not None and first.setdefault(place, pair) is not pair:
            repeated.append(pair[0])
    return first, repeated


def _list_missing(split: SplitFile, first: Mapping[int, Pair]) -> list[str]:
    """The first images of the split without a caption."""
    missing = (place for place in range(len(split.items)) if place not in first)
    return [image for image, _ in split.items.names([*islice(missing, SHOWN_NAMES)])]


def _find_oddities(
    first: Mapping[int, Pair], split: SplitFile, of: str
) -> Sequence[Mapping[str, Any]]:
    """The warnings that a request with these captions would get."""
    if not first:
        return []
    usual = tokenizers.USUAL
    return outputs.arrange_captions(
        [*first.values()],
        {image: place for place, (image, _) in first.items()},
        ReferenceTexts(split.items),
        of,
        subset=True,
        reader=outputs.WordFinder(usual, partial(tokenizers.finds_words, usual)),
    ).warnings


def _warn_of_repeated(images: Sequence[str]) -> Iterator[dict[str, Any]]:
    for image in islice(images, outputs.MAX_WARNINGS):
        detail = "another caption of this image; a request may have one"
        yield {"code": "repeated_image", "image": image, "detail": detail}
