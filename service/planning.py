"""From a request to a graph of works. Pure: no clock, no files, no database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.contract.blocks import BLOCK_IMAGES, USUAL_SEARCH, decoding_block
from service.contract.works import Blob, Work

# A shard is whole blocks, so that sharding changes no bit, and short (1 to 3 s on two cores): an
# instant score waits for the one that runs.
COLUMNS_IMAGES, CAPTIONS_IMAGES = 1024, 256
# Parsing takes 30 to 50 ms a caption on two cores: these are at most 20 s. A caption that somebody
# has parsed before costs nothing, and five references of an image are seldom the same.
PARSED_IMAGES, PARSED_REFERENCES_IMAGES = 500, 75
MAX_PARTS = 500  # of one work
_WEIGHTED = ("cider_d", "cider")  # by document frequencies
_PARSED = frozenset({"spice", "spider"})  # they need tuples; SPIDEr needs SPICE and CIDEr-D


@dataclass(frozen=True)
class Plan:
    """Works by the name that an evaluation shows; shards are found through `everything`."""

    named: Mapping[str, Work]

    def everything(self) -> list[Work]:
        """Every work once, those needed first."""
        found: dict[str, Work] = {}
        for work in self.named.values():
            for step in work.everything():
                found.setdefault(step.key, step)
        return list(found.values())


def plan_checkpoint(
    checkpoint: str,
    dataset: str,
    split: str,
    images: int,
    *,
    pregen: bool,
    families: Sequence[str],
    tokenizer: str,
    decoding: Mapping[str, Any],
) -> Plan:
    """Pre-gen scores first, then captions, then one work for each post-gen family."""
    inputs = {"checkpoint": Blob(checkpoint), "dataset": Blob(dataset)}
    named: dict[str, Work] = {}
    if pregen:
        named["prefix"] = Work("prefix", inputs, {"split": split})
        sizes = images, BLOCK_IMAGES, COLUMNS_IMAGES
        named["columns"] = _sharded("columns", inputs, {"split": split}, *sizes)
        named["pregen"] = Work("pregen", {"columns": named["columns"]}, {})
    if families:
        parameters = {"split": split, "decoding": dict(decoding)}
        search = decoding["beam"], decoding["max_words"]
        usual = CAPTIONS_IMAGES * USUAL_SEARCH // math.prod(search)
        sizes = images, decoding_block(*search), min(CAPTIONS_IMAGES, usual)
        named["captions"] = _sharded("captions", inputs, parameters, *sizes)
        named |= _postgen(named["captions"], dataset, split, images, families, tokenizer)
    return Plan(named)


def plan_captions(
    captions: str,
    dataset: str,
    split: str,
    images: int,
    *,
    families: Sequence[str],
    tokenizer: str,
    idf: str = "dataset",
) -> Plan:
    """`idf` matters where captions answer a part of the split."""
    return Plan(_postgen(Blob(captions), dataset, split, images, families, tokenizer, idf))


def _postgen(
    captions: Blob | Work,
    dataset: str,
    split: str,
    images: int,
    families: Sequence[str],
    tokenizer: str,
    idf: str = "dataset",
) -> dict[str, Work]:
    references = Work(
        "references", {"dataset": Blob(dataset)}, {"split": split, "tokenizer": tokenizer}
    )
    inputs = {"captions": captions, "references": references}
    named = {"references": references}
    own = {"idf": idf} if idf != "dataset" else {}
    weighted = dict.fromkeys(_WEIGHTED, own)
    named |= {
        family: Work(family, inputs, weighted.get(family, {}))
        for family in families
        if family not in _PARSED
    }
    if _PARSED.isdisjoint(families):
        return named
    sizes = images, 1, PARSED_REFERENCES_IMAGES
    named["reference_tuples"] = _sharded("tuples", {"references": references}, {}, *sizes)
    sizes, own_words = (images, 1, PARSED_IMAGES), {"tokenizer": tokenizer}
    named["tuples"] = _sharded("tuples", {"captions": captions}, own_words, *sizes)
    parsed = {name: named[name] for name in ("tuples", "reference_tuples")}
    named["spice"] = Work("spice", {**inputs, **parsed}, {})
    if "spider" in families:
        named.setdefault("cider_d", Work("cider_d", inputs, own))
        halves = {name: named[name] for name in ("spice", "cider_d")}
        named["spider"] = Work("spider", {"references": references, **halves}, {})
    return named


def _sharded(
    kind: str,
    inputs: Mapping[str, Blob | Work],
    parameters: Mapping[str, Any],
    images: int,
    block: int,
    wanted: int,
) -> Work:
    """One work for all images, joined from parts of about `wanted` where there are more: whole
    blocks, and more of them where the parts would be too many.
    """
    size = block * max(1, wanted // block, math.ceil(images / (block * MAX_PARTS)))
    starts = range(0, images, size)
    parts = tuple(
        Work(kind, inputs, {**parameters, "images": [start, min(start + size, images)]})
        for start in starts
    )
    return Work(kind, inputs, parameters, parts if len(parts) > 1 else ())
