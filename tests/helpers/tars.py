"""Tars of files."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def packed(files: Mapping[str, bytes]) -> bytes:
    """A tar of these files, bytes by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def packed_folder(folder: Path) -> bytes:
    """A tar of the folder's files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return packed({str(path.relative_to(folder)): path.read_bytes() for path in paths})
