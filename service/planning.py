"""From a request to a graph of works. Pure: no clock, no files, no database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.contract.works import Blob, Work

PART_IMAGES = {  # a shard is whole blocks, and short: an instant score waits for the one that runs
    "columns": 1024,  # some 3 s on two cores
    "captions": 256,  # 1 to 3 s with a beam of 3
}
BLOCK_IMAGES = 128  # the engine's; a part is whole blocks, so that sharding changes no bit


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
        named["columns"] = _sharded("columns", inputs, {"split": split}, images)
        named["pregen"] = Work("pregen", {"columns": named["columns"]}, {})
    if families:
        parameters = {"split": split, "decoding": dict(decoding)}
        named["captions"] = _sharded("captions", inputs, parameters, images)
        named |= _postgen(named["captions"], dataset, split, families, tokenizer)
    return Plan(named)


def plan_captions(
    captions: str, dataset: str, split: str, *, families: Sequence[str], tokenizer: str
) -> Plan:
    return Plan(_postgen(Blob(captions), dataset, split, families, tokenizer))


def _postgen(
    captions: Blob | Work, dataset: str, split: str, families: Sequence[str], tokenizer: str
) -> dict[str, Work]:
    references = Work(
        "references", {"dataset": Blob(dataset)}, {"split": split, "tokenizer": tokenizer}
    )
    inputs = {"captions": captions, "references": references}
    named = {"references": references}
    return named | {family: Work(family, inputs, {}) for family in families}


def _sharded(
    kind: str, inputs: Mapping[str, Blob | Work], parameters: Mapping[str, Any], images: int
) -> Work:
    """One work for all images, joined from parts where there are many."""
    size = PART_IMAGES[kind]
    starts = range(0, images, size)
    parts = tuple(
        Work(kind, inputs, {**parameters, "images": [start, min(start + size, images)]})
        for start in starts
    )
    return Work(kind, inputs, parameters, parts if len(parts) > 1 else ())
