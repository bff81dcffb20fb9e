"""Tables that follow from other tables."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class View(Mapping[str, T]):
    """What `make` gives whenever it is read: a row that is added elsewhere is here at once."""

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> T:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())
