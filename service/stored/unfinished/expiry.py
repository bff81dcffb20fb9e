"""Uploads that nobody goes on with are deleted, with their bytes."""

import time

from service.stored.unfinished import rows
from service.works.blobs import Blobs
from service.works.records import Records

_ORPHAN_SECONDS = 3600.0  # since a file without a row was written to


def sweep(records: Records, blobs: Blobs) -> int:
    """Delete what has expired, and files whose rows are gone; returns how many files."""
    now = time.time()
    gone = set(rows.forget_expired(records, now))
    left = set(blobs.all_unended(now - _ORPHAN_SECONDS)) - gone
    if left:
        gone |= left - rows.writers(records, left).keys()
    for identity in gone:
        blobs.unended(identity).unlink(missing_ok=True)
    return len(gone)
