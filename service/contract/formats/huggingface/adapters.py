"""An adapter (LoRA) that PEFT has saved, judged without that library: which tensors of a base it
changes, and how.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from service.contract.errors import ConfigInvalid, TensorMismatch
from service.contract.formats import strict_json
from service.contract.formats.huggingface import tensors
from service.contract.formats.huggingface.schemas import ConfigPart, validate_part
from service.contract.formats.huggingface.tensors import DTYPES, LocatedTensor
from service.contract.formats.packages import ModelPackage

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_MOST_JSON = 1_000_000
_NAME = re.compile(r"base_model\.model\.(.{1,300})")
_WRAPPER = re.compile(r"\.(base_layer|modules_to_save)(?=\.)")
_SIDE = re.compile(r"(.+)\.lora_(embedding_)?([AB])(?:\.weight)?")
# Patterns of strangers could take hours: they repeat at most twice, and no group.
_PLAIN = r"(?:[\w.^$|-]|\\[.d])*"
_Pattern = Annotated[str, Field(pattern=rf"^{_PLAIN}(?:(?:\.\*|\\d\+){_PLAIN}){{0,2}}$")]
_Rank = Annotated[int, Field(ge=1, le=65_536)]
_Alpha = Annotated[float, Field(allow_inf_nan=False)]


class _LoraSchema(ConfigPart):
    harmless = frozenset(
        [
            *("auto_mapping", "peft_version", "revision", "task_type", "inference_mode"),
            *("lora_dropout", "exclude_modules", "layers_to_transform", "layers_pattern"),
            *("megatron_core", "eva_config", "qalora_group_size", "runtime_config"),
            "fan_in_fan_out",  # told by the base's layer, as for PEFT
        ]
    )

    peft_type: Literal["LORA"]
    base_model_name_or_path: Annotated[str, Field(max_length=500)] = ""
    r: _Rank = 8
    lora_alpha: _Alpha = 8
    use_rslora: bool = False
    rank_pattern: dict[_Pattern, _Rank] = Field(default_factory=dict, max_length=1_000)
    alpha_pattern: dict[_Pattern, _Alpha] = Field(default_factory=dict, max_length=1_000)
    target_modules: list[str] | str = ""
    modules_to_save: list[str] = Field(default_factory=list)
    bias: Literal["none", "all", "lora_only"] = "none"
    # Other beginnings of A and B change the base's weights too.
    init_lora_weights: Literal[True, "gaussian", "orthogonal", "eva"] = True


@dataclass(frozen=True)
class LayerChange:
    """Change of a layer's weight by `scale` · B @ A; of an embedding's, by its transpose."""

    scale: float
    is_embedding: bool


@dataclass(frozen=True)
class LoraAdapter:
    """Adapter that a package describes, by the names of the trained network. `base`: the name that
    the training had for its base. `changes` by layer; `tensors`: `LAYER.A` and `LAYER.B` of each,
    and tensors that replace the base's.
    """

    base: str
    changes: Mapping[str, LayerChange]
    tensors: Mapping[str, LocatedTensor]


def validate_adapter(package: ModelPackage) -> LoraAdapter:
    """Validate an adapter. Raises an InvalidCheckpoint: what is wrong, where, and what to do."""
    text = package.text(ADAPTER_CONFIG, _MOST_JSON)
    written = strict_json.parse_object(text, ADAPTER_CONFIG, f"/{ADAPTER_CONFIG}")
    # Options that are not set change nothing.
    chosen = {name: each for name, each in written.items() if each or type(each) in (int, float)}
    for name in chosen.keys() - _LoraSchema.model_fields.keys() - _LoraSchema.harmless:
        raise ConfigInvalid(
            f"{ADAPTER_CONFIG}: {name:.100} is not implemented: merge the adapter where it was "
            "trained (merge_and_unload), and send the whole model",
            pointer=f"/{ADAPTER_CONFIG}/{name:.100}",
        )
    config = validate_part(_LoraSchema, chosen, ADAPTER_CONFIG)
    located, embeddings = _locate_tensors(package)
    for module in config.modules_to_save:
        if not any(f".{module}." in f".{name}" for name in located):
            raise TensorMismatch(f"modules_to_save: {ADAPTER_WEIGHTS} has no {module!r:.100}")
    changes = {
        layer: LayerChange(_find_scale(config, layer, located), is_embedding)
        for layer, is_embedding in embeddings.items()
    }
    return LoraAdapter(config.base_model_name_or_path, changes, located)


def _locate_tensors(package: ModelPackage) -> tuple[dict[str, LocatedTensor], dict[str, bool]]:
    """Locate the tensors, and list the layers of which there is a part, with whether each is an
    embedding.
    """
    located: dict[str, LocatedTensor] = {}
    embeddings: dict[str, bool] = {}
    for full, tensor in tensors.locate_file_tensors(package, ADAPTER_WEIGHTS).items():
        matched = _NAME.fullmatch(full)
        name = _WRAPPER.sub("", matched[1]) if matched else ""
        if side := _SIDE.fullmatch(name):
            embeddings[side[1]] = side[2] is not None
            name = f"{side[1]}.{side[3]}"
        is_known = matched and name not in located and ".lora_" not in name
        if not is_known or tensor.entry.dtype not in DTYPES:
            raise TensorMismatch(
                f"tensor {full!r:.100} of {tensor.entry.dtype}: expected lora_A, lora_B or a "
                f"tensor of base_model.model that replaces the base's, of {', '.join(DTYPES)}, once"
            )
        located[name] = tensor
    return located, embeddings


def _find_scale(config: _LoraSchema, layer: str, located: Mapping[str, LocatedTensor]) -> float:
    """The factor of B @ A. Raises where their shapes are not of the rank that the config names."""
    targets = config.target_modules
    if isinstance(targets, list) and not any(f".{layer}".endswith(f".{each}") for each in targets):
        raise TensorMismatch(f"{layer}: expected one of target_modules, {', '.join(targets):.200}")
    rank = _choose(config.rank_pattern, layer, config.r)
    sides = (located.get(f"{layer}.{side}") for side in "AB")
    match [None if side is None else side.entry.shape for side in sides]:
        case [(a_rank, _), (_, b_rank)] if (a_rank, b_rank) == (rank, rank):
            alpha = _choose(config.alpha_pattern, layer, config.lora_alpha)
            return float(alpha / (math.sqrt(rank) if config.use_rslora else rank))
        case found:
            raise TensorMismatch(
                f"{layer}: {ADAPTER_CONFIG} says rank {rank}: expected A of shape ({rank}, inputs) "
                f"and B of shape (outputs, {rank}), found {found[0]} and {found[1]}",
                pointer=f"/{layer}",
            )


def _choose(patterns: Mapping[str, Any], layer: str, usual: Any) -> Any:
    """The value of the first pattern that fits a layer's path or its end, as PEFT chooses it."""
    fits = (key for key in patterns if re.fullmatch(rf"(.*\.)?({key})", layer))
    return patterns.get(next(fits, ""), usual)
