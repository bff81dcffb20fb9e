"""Every architecture's config and tensors: a row for each family of captioners."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from service.contract.formats.checkpoint_header import attention, recurrent, transformer
from service.contract.formats.checkpoint_header.attention import (
    AttentionArchitecture,
    AttentionConfig,
)
from service.contract.formats.checkpoint_header.recurrent import Config, RecurrentArchitecture
from service.contract.formats.checkpoint_header.sizes import Shapes
from service.contract.formats.checkpoint_header.transformer import (
    TransformerArchitecture,
    TransformerConfig,
)

Architecture = RecurrentArchitecture | AttentionArchitecture | TransformerArchitecture
AnyConfig = Config | AttentionConfig | TransformerConfig


def _any(architecture: str, config: AnyConfig) -> None:
    """Every config is of every architecture."""


@dataclass(frozen=True)
class Family:
    """`shapes`: of an architecture, its config and the size of its vocabulary; `check` raises
    ConfigInvalid for a config that is right, but not of this architecture.
    """

    config: type[AnyConfig]
    shapes: Callable[[str, Any, int], Shapes]
    check: Callable[[str, Any], None] = _any


def _of(names: Iterable[Architecture], family: Family) -> dict[Architecture, Family]:
    return dict.fromkeys(names, family)


FAMILIES: Mapping[Architecture, Family] = {
    **_of(recurrent.RECURRENT, Family(Config, recurrent.shapes, recurrent.check)),
    **_of(attention.ATTENTION, Family(AttentionConfig, attention.shapes, attention.check)),
    **_of(get_args(TransformerArchitecture), Family(TransformerConfig, transformer.shapes)),
}
ARCHITECTURES = tuple(FAMILIES)


def shapes(architecture: str, config: AnyConfig, vocabulary_size: int) -> Shapes:
    """Names and shapes of a checkpoint's tensors; all matrices are (in, out)."""
    family = FAMILIES[cast("Architecture", architecture)]
    return family.shapes(architecture, config, vocabulary_size)
