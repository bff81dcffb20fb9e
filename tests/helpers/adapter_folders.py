"""Adapters of made-up weights, in the form in which PEFT saves them; and their merge, by the
published definition, into the tensors of a base.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

PREFIX = "base_model.model."
CONFIG = {
    "peft_type": "LORA", "task_type": "CAUSAL_LM", "inference_mode": True, "r": 3, "lora_alpha": 5,
    "lora_dropout": 0.05, "bias": "none", "fan_in_fan_out": False, "target_modules": None,
    "init_lora_weights": True, "use_dora": False, "use_rslora": False, "layers_pattern": None,
    "layers_to_transform": None, "rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None,
    "megatron_config": None, "megatron_core": "megatron.core", "loftq_config": {}, "revision": None,
    "base_model_name_or_path": "acme/tiny", "auto_mapping": None,
}  # fmt: skip


def make_pairs(
    layers: Mapping[str, tuple[int, int]], seed: int = 0, rank: int = 3
) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B of these layers, each of (outputs, inputs)."""
    made = torch.Generator().manual_seed(seed)
    return {
        layer: (
            torch.randn(rank, inputs, generator=made) * 0.4,
            torch.randn(outputs, rank, generator=made) * 0.4,
        )
        for layer, (outputs, inputs) in layers.items()
    }


def write(
    folder: Path,
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    whole: Mapping[str, Tensor] | None = None,
    **changes: Any,
) -> Path:
    """The folder of an adapter; a layer that is an embedding has `embed` in its name."""
    tensors = {f"{PREFIX}{name}": tensor for name, tensor in (whole or {}).items()}
    for layer, (a, b) in pairs.items():
        for side, tensor in (("A", a), ("B", b)):
            kind = f"lora_embedding_{side}" if "embed" in layer else f"lora_{side}.weight"
            tensors[f"{PREFIX}{layer}.{kind}"] = tensor
    folder.mkdir(exist_ok=True)
    save_file({name: each.contiguous() for name, each in tensors.items()}, folder / WEIGHTS)
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **changes}))
    return folder


WEIGHTS = "adapter_model.safetensors"
