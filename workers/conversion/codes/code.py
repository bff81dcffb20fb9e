"""What is found of a public code in a model's tensors, and its map."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workers.conversion.layers import Arrays

Value = str | int | list[str]
_WEIGHTS_OF_PICTURES = 4  # dimensions: of a convolution


@dataclass(frozen=True)
class Line:
    """A line of a map: `why` is its comment."""

    name: str
    value: Value
    why: str = ""


@dataclass(frozen=True)
class Code:
    """`warnings`: what no tensor shows; `words`: START, END and UNK."""

    name: str
    lines: Sequence[Line]
    words: tuple[str, str, str]
    layers: Mapping[str, Value]
    tokenizer: Line
    warnings: Sequence[str] = ()
    ignore: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    arrays: Arrays
    by_id: Sequence[str]

    def root(self, *marks: str) -> str | None:
        """What stands before these names, where all of them stand beside each other."""
        first, *others = marks
        for name in self.arrays:
            if name == first or name.endswith(f".{first}"):
                root = name.removesuffix(first)
                if all(f"{root}{other}" in self.arrays for other in others):
                    return root
        return None

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.arrays[name].shape)

    def has(self, name: str) -> bool:
        return name in self.arrays

    def word(self, *usual: str) -> str:
        return next((word for word in usual if word in self.by_id), "?")

    def edge(self) -> str:
        """The word of id 0."""
        return next(iter(self.by_id), "?")

    def vocabulary(self, embedding: str) -> Iterator[str]:
        """A warning where the words are not those of the embedding."""
        rows = self.shape(f"{embedding}.weight")[0]
        if rows != len(self.by_id):
            yield (
                f"the embedding has {rows} rows, and the vocabulary {len(self.by_id)} words: this "
                "map will be refused with these words"
            )

    def of_pictures(self, layers: Mapping[str, Value]) -> list[str]:
        """Patterns of the modules with convolutions, of which no layer is a part."""
        listed = (one if isinstance(one, list) else [str(one)] for one in layers.values())
        names = [each for some in listed for each in some]
        patterns: dict[str, None] = {}
        for name, array in self.arrays.items():
            if array.ndim == _WEIGHTS_OF_PICTURES:
                parts = name.split(".")
                above = (".".join(parts[:end]) for end in range(1, len(parts)))
                free = (
                    each
                    for each in above
                    if not any(f"{one}.".startswith(f"{each}.") for one in names)
                )
                module = next(free, None)
                if module is not None:
                    patterns[f"{module}.*"] = None
        return list(patterns)
