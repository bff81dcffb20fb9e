"""The tables of README.md in this folder: what the slow tests measure."""

from collections.abc import Sequence
from pathlib import Path

README = Path(__file__).parent / "README.md"


def tell(cells: Sequence[Sequence[str]], capsys) -> None:
    """Prints rows; fails where README.md says otherwise."""
    rows = [f"| {' | '.join(row)} |" for row in cells]
    with capsys.disabled():
        print("", *rows, sep="\n")
    documented = README.read_text("utf-8").splitlines()
    assert [row for row in rows if row not in documented] == [], "not what README.md says"
