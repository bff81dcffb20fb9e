"""Versions of datasets in the record, for tests that need no bundle."""

from service.contract.formats.bundles.files import ContentDigests
from service.stored import dataset_versions


def add(records, name, digest, facts, captions=None):
    """Add a version; its captions have the digest of its bundle, or that of `captions`."""
    return dataset_versions.add_dataset_version(
        records, name, digest, facts, ContentDigests(digest, captions or digest)
    )
