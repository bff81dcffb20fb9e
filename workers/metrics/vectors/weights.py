"""A language model made of its config.json and its weights, without running code of either."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contract.errors import MetricFailed

if TYPE_CHECKING:
    import torch

_UNUSED = "pooler."  # weights that no layer's output depends on


def load(kind: str, config: Mapping[str, Any], files: Sequence[Path]) -> "torch.nn.Module":
    """The model in float32, without dropout. Missing weights are refused, because the library would
    draw them at random.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported
    import torch
    import transformers
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tensors = {name: tensor for path in files for name, tensor in load_file(path).items()}
        described = transformers.AutoConfig.for_model(kind, **_plain(kind, config))
        class_: Any = transformers.MODEL_MAPPING[type(described)]
        _check_size(class_, described, tensors)
        model, report = class_.from_pretrained(
            None,
            config=described,
            state_dict=tensors,
            dtype=torch.float32,
            attn_implementation="eager",
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except SafetensorError as error:
        raise MetricFailed(f"the weights are no safetensors: {error}") from None
    except MetricFailed:
        raise
    except Exception as error:  # noqa: BLE001  config.json may hold anything, so any error may come
        raise MetricFailed(f"config.json and the weights make no {kind}: {error!r:.300}") from None
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(_UNUSED))
    if missing:
        raise MetricFailed(f"{len(missing)} weights are missing, the first is {missing[0]:.100}")
    wrong = [name for name, values in model.named_parameters() if not values.isfinite().all()]
    if wrong:
        raise MetricFailed(f"{len(wrong)} weights are not finite, the first is {wrong[0]:.100}")
    found: torch.nn.Module = model.eval()
    return found


def _plain(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that describe this kind of model, without the library's own notes."""
    import transformers

    known = transformers.AutoConfig.for_model(kind).to_dict()
    notes = ("architectures", "dtype", "model_type", "transformers_version")
    return {
        name: value
        for name, value in config.items()
        if name in known and name not in notes and not name.startswith("_")
    }


def _check_size(class_: Any, described: Any, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Refuse a config.json that describes more weights than the files hold: a small file must not
    make us ask for a terabyte. The weights are counted on a device without memory.
    """
    import torch

    with torch.device("meta"):
        needed = _numbers(class_(described).named_parameters())
    given = _numbers(tensors.items())
    if needed > given:
        raise MetricFailed(f"config.json describes {needed} weights, the files hold {given}")


def _numbers(tensors: "Iterable[tuple[str, torch.Tensor]]") -> int:
    return sum(tensor.numel() for name, tensor in tensors if _UNUSED not in name)
