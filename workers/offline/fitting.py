"""Holds captions against the images of a dataset, with the checks of a service."""

from collections.abc import Sequence
from functools import partial

from service.contract.errors import RequestRefused
from service.contract.formats import outputs
from service.contract.metrics import tokenizers
from workers.offline.sources import Source


def fitted(
    given: Sequence[tuple[str, str]],
    source: Source,
    *,
    subset: bool | None,
    tokenizer: str = tokenizers.USUAL,
) -> outputs.Arranged:
    """Arrange (image, caption) pairs in the split's order. RequestRefused where they do not fit.

    `subset`: whether some images may lack a caption; None: they may not, and there is no such
    option to tell of.
    """
    references = [item.references for item in source.items]
    advice = "" if subset is None else "; add `--subset` to score a part"
    found = outputs.arrange(
        *(given, source.places, references, str(source)),
        subset=bool(subset),
        reader=outputs.Reader(tokenizer, partial(tokenizers.finds_words, tokenizer)),
        advice=advice,
    )
    if found.problems:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise RequestRefused(f"captions do not fit {source}: {_said(*found.problems[0])}{more}")
    return found


def _said(pointer: str, detail: str) -> str:
    index = pointer.removeprefix("/").partition("/")[0]
    return f"item {int(index) + 1}: {detail}" if index else detail
