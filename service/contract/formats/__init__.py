"""Readers of users' files without numpy: dataset bundles, checkpoint headers, captions."""
