"""Parts of the repository's Markdown pages: links, code, commands, tables."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@cache
def files() -> frozenset[str]:
    """Paths, from the root, of all files that git has or would add."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(path for path in output.splitlines() if (ROOT / path).exists())


@cache
def folders() -> frozenset[str]:
    return frozenset(str(parent) for path in files() for parent in Path(path).parents)


def pages() -> list[str]:
    return sorted(path for path in files() if path.endswith(".md"))


@cache
def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def section(path: str, heading: str) -> str:
    """The text under a heading of the second level."""
    return read(path).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def subsection(path: str, heading: str) -> str:
    """The text under a heading of the third level."""
    return read(path).split(f"\n### {heading}\n")[1].split("\n#")[0]


def table(text: str) -> list[list[str]]:
    """The cells of the first table, without its heading."""
    (first, *_) = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    rows = [re.split(r"(?<!\\)\|", row.strip("|")) for row in first.splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def spans(text: str) -> list[str]:
    """Code inside sentences, with line breaks as blanks."""
    return [" ".join(found.split()) for found in _SPAN.findall(prose(text))]


def prose(text: str) -> str:
    """The text without blocks of code."""
    return re.sub(r"^ {4}\S.*$", "", _FENCE.sub("", text), flags=re.MULTILINE)


def blocks(text: str) -> Iterator[str]:
    """Blocks of indented code, without the indentation."""
    for found in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", _FENCE.sub("\n", text), re.MULTILINE):
        yield re.sub(r"^ {4}", "", found, flags=re.MULTILINE)


def fenced(text: str, language: str) -> list[str]:
    return [code for found, code in _FENCE.findall(text) if found == language]


def code(text: str) -> list[str]:
    """All code in a page, line by line; continued lines are joined."""
    everything = [*blocks(text), *(found for _, found in _FENCE.findall(text))]
    lines = [line for each in everything for line in each.replace("\\\n", " ").splitlines()]
    return [*spans(text), *lines]


def links(text: str) -> list[str]:
    return _LINK.findall(_SPAN.sub("code", prose(text)))


@cache
def anchors(path: str) -> frozenset[str]:
    """The anchors that GitHub makes from headings."""
    found = [_SPAN.sub(r"\1", heading) for heading in _HEADING.findall(_FENCE.sub("", read(path)))]
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in found]
    return frozenset(heading.strip().replace(" ", "-") for heading in kept)


def from_root(page: str, target: str) -> str | None:
    """The path, from the root, of a page's link; None outside the repository."""
    path = (ROOT / page).parent.joinpath(target).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None


def exists(path: str) -> bool:
    path = path.removeprefix("./").rstrip("/")
    if "*" in path:
        pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(each) for each in files() | folders())
    return path in files() or path in folders()


def is_left_out(path: str) -> bool:
    """Whether git ignores a path, which a reader of the page creates."""
    command = ["git", "check-ignore", "--quiet", path]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0
