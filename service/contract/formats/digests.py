"""Digests: the SHA-256 of a file's bytes, as `sha256:` and 64 hex digits."""

import hashlib
import re
from pathlib import Path

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digest_of(path: Path) -> str:
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
