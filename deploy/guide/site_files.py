"""Copies README.md, and the files of the repository that it and its pages link to, into a folder.

    python deploy/guide/site_files.py FOLDER

MkDocs needs all pages in one folder. Their links stay as they are.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"^```.*?^```|`[^`]+`|^ {4}.*?$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s#]+)[^()\s]*\)")


def list_links(page: Path) -> set[Path]:
    """Files of the repository that a page links to or shows."""
    targets = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    paths = {(page.parent / target).resolve() for target in targets if "://" not in target}
    return {path for path in paths if path.is_file() and path.is_relative_to(ROOT)}


def list_files() -> set[Path]:
    """Files that can be reached from README.md."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += list_links(path) if path.suffix == ".md" else []
    return reached


def copy_files(folder: Path) -> None:
    for path in list_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


if __name__ == "__main__":
    copy_files(Path(sys.argv[1]))
