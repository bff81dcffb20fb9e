"""The next adapter on a base that a worker has in memory, beside the first one, which reads the
base: seconds until scoring begins, the reading of the adapter in the sandbox included.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import transformers
from rows import Row, seconds  # beside this file

from helpers import adapter_folders, vision_language_folders
from service.contract.assets import AssetFolders
from workers.jobs import checkpoints
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.offline import assets
from workers.progress import ignore_progress

_RANK = 16
_WIDTH, _INNER, _LAYERS, _WORDS = 2048, 5504, 12, 32_000
_ATTENTION = {"self_attn.q_proj": (_WIDTH, _WIDTH), "self_attn.v_proj": (_WIDTH, _WIDTH)}
_OTHERS = {
    "self_attn.k_proj": (_WIDTH, _WIDTH),
    "self_attn.o_proj": (_WIDTH, _WIDTH),
    "mlp.gate_proj": (_INNER, _WIDTH),
    "mlp.up_proj": (_INNER, _WIDTH),
    "mlp.down_proj": (_WIDTH, _INNER),
}
_EACH = {"of queries and values": _ATTENTION, "of all layers": _ATTENTION | _OTHERS}


def measure(device: str) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        base = _make_base(Path(folder) / "base")
        for name, layers in _EACH.items():
            toolbox = Toolbox(device, AssetFolders(Path(folder) / name))
            digest = assets.add_base("base", base, toolbox.places)["base base"].sha256
            requests = [
                _request(Path(folder) / f"{name} {seed}", layers, f"sha256:{digest}", seed)
                for seed in range(4)
            ]
            first, *others = (
                seconds(
                    lambda request=request, toolbox=toolbox: checkpoints.prepare_checkpoint(
                        request, toolbox, ignore_progress
                    )
                )
                for request in requests
            )
            note = f"{min(others) / first:.1%} of the first one's seconds"
            rows.append(Row(f"next adapter {name}", min(others), "the first one", first, note))
            toolbox.close()
    return rows


def _make_base(folder: Path) -> Path:
    """A LLaVA of 0.7 billion parameters in bf16, with a small encoder of pictures."""
    vision_language_folders.save_model(folder, "llava")
    config = transformers.LlavaConfig.from_pretrained(folder)
    text = {
        "hidden_size": _WIDTH,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "vocab_size": _WORDS,
    }
    config.text_config = transformers.LlamaConfig(
        **{**config.text_config.to_dict(), "head_dim": _WIDTH // 16, **text}
    )
    model = transformers.LlavaForConditionalGeneration(config).bfloat16()
    model.generation_config.eos_token_id = vision_language_folders.END
    model.save_pretrained(folder)
    return folder


def _request(folder: Path, layers: dict[str, Sequence[int]], base: str, seed: int) -> JobRequest:
    named = {
        f"model.language_model.layers.{number}.{name}": shape
        for number in range(_LAYERS)
        for name, shape in layers.items()
    }
    pairs = adapter_folders.make_pairs(named, seed, _RANK)
    small = {name: (a / 40, b / 40) for name, (a, b) in pairs.items()}
    adapter_folders.write(folder, small, r=_RANK, lora_alpha=2 * _RANK)
    return JobRequest({"package": folder}, {"package": f"sha256:{seed}"}, (), {"base": base})
