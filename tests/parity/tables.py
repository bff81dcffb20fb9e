"""The tables of README.md in this folder: what the slow tests measure."""

from collections.abc import Sequence
from pathlib import Path

README = Path(__file__).parent / "README.md"


def tell(cells: Sequence[Sequence[str]], capsys, page: Path = README) -> None:
    """Prints rows; fails where the page says otherwise."""
    rows = [f"| {' | '.join(row)} |" for row in cells]
    with capsys.disabled():
        print("", *rows, sep="\n")
    documented = page.read_text("utf-8").splitlines()
    assert [row for row in rows if row not in documented] == [], f"not what {page.name} says"
