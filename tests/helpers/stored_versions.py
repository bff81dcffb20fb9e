"""Versions of datasets in the record, for tests that need no bundle."""

from service.contract.formats.bundles.content import Content
from service.stored import versions


def add(records, name, digest, facts, captions=None):
    """A version; its captions are read from its own bundle, or from the object `captions`."""
    captions = captions or digest
    return versions.add(records, name, digest, captions, facts, Content(digest, captions))
