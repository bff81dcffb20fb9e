"""Stored columns that somebody's own code computed, by the SHA-256 of their bytes."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.checkpoints import Columns
from service.contract.api.field_types import moment
from service.contract.errors import NotFound
from service.contract.metrics import signatures
from service.engine.blobs import Blobs
from service.engine.records import Records, in_batches
from service.engine.service_parts import ServiceParts
from service.engine.tables import brought_columns
from service.stored import judges, uploaded_files
from service.stored.datasets import PinnedSplit, open_pinned_split


def add(
    records: Records,
    digest: str,
    size: int,
    description: dict[str, Any],
    blobs: Blobs | None = None,
) -> None:
    uploaded_files.add_file(records, brought_columns, digest, size, description, blobs)


def exists(records: Records, blobs: Blobs, digest: str) -> bool:
    return uploaded_files.has_file(records, blobs, brought_columns, digest)


def get(parts: ServiceParts, digest: str) -> Columns:
    found = uploaded_files.find_file(parts.records, brought_columns, digest)
    if found is None:
        raise NotFound(
            f"no columns {digest}: upload them with PUT /v1/columns/{digest}", name=digest
        )
    return Columns(
        digest=digest,
        bytes=found.bytes,
        **{"words": None, "pieces": None, **found.description},
        created_at=moment(found.created_at),
    )


def find_signatures(
    connection: Connection, asked: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Signatures of columns' scores, by digest and units; none where columns were deleted."""
    pairs = set(asked)
    found: dict[str, dict[str, Any]] = {}
    for batch in in_batches({digest for digest, _ in pairs}):
        query = sa.select(brought_columns).where(brought_columns.c.digest.in_(batch))
        found |= {row.digest: json.loads(row.description) for row in connection.execute(query)}
    return {
        (digest, units): _signed(found[digest], units) for digest, units in pairs if digest in found
    }


def _signed(description: Mapping[str, Any], units: str) -> str:
    pieces = description.get("pieces")
    if pieces is None:
        return signatures.sign_brought_columns(description["tokenizer"], None)
    return signatures.sign_brought_columns(
        pieces if units == "pieces" else description["tokenizer"], units
    )


class ColumnsFit(NamedTuple):
    """The difference at the first image in which columns differ from a split, if one does; how
    many references they have, and how many of these hold an unknown word.
    """

    difference: str | None
    references: int
    unknown: int


def compare_with_split(blobs: Blobs, digest: str, pinned: PinnedSplit) -> ColumnsFit:
    """Compare columns with the split that they are to be of."""
    split = open_pinned_split(blobs, pinned)
    asked = judges.get_judges().ask(
        "columns of a split",
        lambda: False,
        path=str(blobs.path(digest, check=False)),
        images=str(split.path),
        split=pinned.split,
    )
    return ColumnsFit(**asked.result())
