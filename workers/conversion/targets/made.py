"""What all captioners that are made by a map have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from service.contract.errors import RequestRefused
from service.contract.formats.checkpoint_header import AnyConfig
from service.contract.formats.state_dicts.vocabularies import Ordered
from service.contract.wording import told
from workers.conversion import layers
from workers.conversion.layers import Affine, Floats, State


@dataclass(frozen=True)
class Made:
    """A captioner's config and its tensors."""

    config: AnyConfig
    tensors: Mapping[str, Floats]


@dataclass(frozen=True)
class Source:
    """A model's tensors, how many words it has, and which of its ids are a captioner's."""

    state: State
    words: Ordered
    size: int

    def embedding(self, name: str) -> Floats:
        found = self.state.tensor(f"{name}.weight", 2)
        self._check("embedding", len(found))
        return found[self.words.read]

    def output(self, name: str) -> Affine:
        found = layers.linear(self.state, name)
        self._check("output", len(found.bias))
        return Affine(found.weight[:, self.words.written], found.bias[self.words.written])

    def _check(self, name: str, found: int) -> None:
        if found != self.size:
            ids = (
                ": do its ids begin with 1, as those of `ix_to_word`? Give them as an object "
                "with ids then"
                if found == self.size + 1
                else ""
            )
            raise RequestRefused(
                f"map, layers.{name}: is for {found} words, and the vocabulary has {self.size}{ids}"
            )


def configured(make: Callable[[], AnyConfig]) -> AnyConfig:
    """Raises RequestRefused for a size that no captioner may have."""
    try:
        return make()
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"][0] if first["loc"] else "config"
        raise RequestRefused(f"the model's {where}: {told(first)}") from None


def named(name: str, layer: Affine) -> dict[str, Floats]:
    return {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
