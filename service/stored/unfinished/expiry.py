"""Uploads that nobody goes on with are deleted, with their bytes."""

import time
from contextlib import suppress

from service.contract.errors import StoreUnavailable
from service.engine.blobs import Blobs
from service.engine.records import Records
from service.stored.unfinished import rows

_ORPHAN_SECONDS = 3600.0  # since a file without a row was written to


def sweep(records: Records, blobs: Blobs) -> int:
    """Delete what has expired, and files whose rows are gone; returns how many files."""
    now = time.time()
    expired = rows.forget_expired(records, now)
    for identity, begun in expired:
        if begun is not None and blobs.staging is not None:
            with suppress(StoreUnavailable):  # `sweep_staged` finds it
                blobs.staging.forget(identity, begun)
    gone = {identity for identity, _ in expired}
    left = set(blobs.all_unended(now - _ORPHAN_SECONDS)) - gone
    if left:
        gone |= left - rows.writers(records, left).keys()
    for identity in gone:
        blobs.unended(identity).unlink(missing_ok=True)
    return len(gone)


def sweep_staged(records: Records, blobs: Blobs) -> int:
    """Delete what clients sent to the store for uploads that are gone; returns how many."""
    if blobs.staging is None:
        return 0
    left = list(blobs.staging.old(time.time() - _ORPHAN_SECONDS))
    known = rows.writers(records, {name for name, _ in left}) if left else {}
    orphans = [(name, begun) for name, begun in left if name not in known]
    for name, begun in orphans:
        blobs.staging.forget(name, begun)
    return len(orphans)
