"""Text encoders of the BERT kind in a local folder, read as plain data.

    config.json                sizes; refused if it names code to run
    model.safetensors          or model-00001-of-00002.safetensors …; no pickle is ever opened
    tokenizer.json             the whole tokeniser in one file
    tokenizer_config.json      may be absent; only `model_max_length` is read

Nothing else in the folder is opened, and no network is used.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from service.contract.formats import strict_json
from service.contract.formats.digests import compute_files_digest
from workers.progress import Progress, ignore_progress

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding, Tokenizer

# Kinds whose layers follow one another, so that the first k alone give layer k's output.
KINDS = ("bert", "roberta", "xlm-roberta", "deberta", "deberta-v2", "electra", "mpnet")
_COUNT_FROM_PADDING = frozenset({"roberta", "xlm-roberta", "mpnet"})  # positions begin there
_BLANK_FIRST = frozenset({"roberta"})  # a blank first: the first word is like later ones
_ASKS_FOR_CODE = ("auto_map", "quantization_config")
_MAX_LAYERS = 200
_MAX_JSON_BYTES = 64_000_000
_BATCH_TOKENS = 8192


@dataclass(frozen=True)
class TokenVectors:
    """Sentences as vectors of tokens. Sentence i has the tokens from offsets[i] to offsets[i+1].

    vectors (T, H) f32 of length 1;  tokens (T) u32;  cut (S): 1 if a sentence was too long
    """

    vectors: NDArray[np.float32]
    tokens: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    cut: NDArray[np.uint16]


@dataclass(frozen=True)
class TextEncoder:
    """The first `layer` layers of a model. `digest` is the SHA-256 of all files that were read."""

    digest: str
    layer: int
    special: frozenset[int]  # the tokens before and after every sentence
    tokenizer: "Tokenizer"
    model: "torch.nn.Module"
    blank_first: bool
    size: int  # numbers in a token's vector

    @property
    def name(self) -> str:
        """Mark of the files of this encoder's vectors."""
        return f"{self.digest}/{self.layer}"

    def embed(
        self, sentences: Sequence[str], *, progress: Progress = ignore_progress
    ) -> TokenVectors:
        """Embed sentences, token by token."""
        encodings = self.encode(sentences)
        ids = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        offsets = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        vectors = np.empty((offsets[-1], self.size), np.float32)
        for batch, states in self.states(ids, progress=progress):
            unit = (states / states.norm(dim=-1, keepdim=True)).cpu().numpy()
            for place, rows in zip(batch, unit, strict=True):
                vectors[offsets[place] : offsets[place + 1]] = rows
        return TokenVectors(
            vectors,
            np.concatenate(ids) if ids else np.empty(0, np.uint32),
            offsets,
            np.array([bool(encoding.overflowing) for encoding in encodings], np.uint16),
        )

    def encode(self, sentences: Sequence[str]) -> "list[Encoding]":
        return self.tokenizer.encode_batch([self._plain(text) for text in sentences])

    def states(
        self, ids: Sequence[NDArray[np.uint32]], *, progress: Progress = ignore_progress
    ) -> "Iterator[tuple[list[int], torch.Tensor]]":
        """Batches of sentences' places and states; equal lengths go together, without padding."""
        done = 0
        for batch in _batches(np.array([len(tokens) for tokens in ids], np.int64)):
            yield batch, self._forward(np.stack([ids[place] for place in batch]))
            done += len(batch)
            progress(done, len(ids))

    def _plain(self, text: str) -> str:
        whole = text.encode("utf-8", "replace").decode("utf-8").strip()
        return f" {whole}" if self.blank_first and whole else whole

    def _forward(self, ids: NDArray[np.uint32]) -> "torch.Tensor":
        import torch

        device = next(self.model.parameters()).device
        with torch.inference_mode():
            inputs = torch.from_numpy(ids.astype(np.int64)).to(device)
            found: torch.Tensor = self.model(input_ids=inputs).last_hidden_state
        return found


def read_encoder(
    folder: Path, layer: int | None = None, device: "str | torch.device" = "cpu"
) -> TextEncoder:
    """Read a model's folder; `layer` None is the last. Raises MetricFailed if it is none."""
    files = _files(folder)
    config = _json(files["config.json"])
    kind = _kind(config)
    layers = config.get("num_hidden_layers")
    chosen = cast("int", layers if layer is None else layer)
    if type(layers) is not int or not 1 <= chosen <= layers <= _MAX_LAYERS:
        raise MetricFailed(f"expected a layer from 1 to {layers!r:.20}, found {chosen!r:.20}")
    tensors = [path for name, path in files.items() if name.endswith(".safetensors")]
    model = load_language_model(kind, {**config, "num_hidden_layers": chosen}, tensors)
    described: Any = model.config
    tokenizer = _tokenizer(files["tokenizer.json"])
    tokenizer.enable_truncation(_longest(kind, described, files.get("tokenizer_config.json")))
    highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
    if highest >= described.vocab_size:
        raise MetricFailed(
            f"the tokeniser has a token {highest}, the model knows {described.vocab_size}"
        )
    return TextEncoder(
        digest=compute_files_digest(sorted(files.items())),
        layer=chosen,
        special=frozenset(tokenizer.encode("").ids),
        tokenizer=tokenizer,
        model=model.to(device),
        blank_first=kind in _BLANK_FIRST,
        size=described.hidden_size,
    )


def _batches(lengths: NDArray[np.int64]) -> Iterator[list[int]]:
    order = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths[lengths > 0]).tolist():
        same = order[lengths[order] == length].tolist()
        size = max(1, _BATCH_TOKENS // length)
        for start in range(0, len(same), size):
            yield same[start : start + size]


def _files(folder: Path) -> dict[str, Path]:
    """The files of the folder that are read, by name."""
    if not folder.is_dir():
        raise MetricFailed(f"expected a model's folder, found none at {folder.name}")
    there = {path.name: path for path in folder.iterdir() if path.is_file()}
    saved = [name for name in there if name == "model.safetensors"] or _shards(there)
    if not saved:
        pickled = [name for name in sorted(there) if name.endswith((".bin", ".pt", ".ckpt"))]
        found = (
            f"found {pickled[0]}, which runs code when it is loaded" if pickled else "found none"
        )
        raise MetricFailed(f"expected weights in model.safetensors, {found}; save them there")
    for name in ("config.json", "tokenizer.json"):
        if name not in there:
            raise MetricFailed(
                f"expected {name} in the model's folder; both it and the weights are written by "
                "save_pretrained of the model and of its (fast) tokeniser"
            )
    names = ("config.json", "tokenizer.json", "tokenizer_config.json", *saved)
    return {name: there[name] for name in names if name in there}


def _shards(names: Mapping[str, Path]) -> list[str]:
    parts = [re.fullmatch(r"model-(\d{5})-of-(\d{5})\.safetensors", name) for name in names]
    found = sorted((int(part[1]), int(part[2]), part[0]) for part in parts if part)
    if [part[:2] for part in found] != [(n + 1, len(found)) for n in range(len(found))]:
        listed = ", ".join(part[2] for part in found)
        raise MetricFailed(f"expected all parts of the weights, found {listed:.200}")
    return [part[2] for part in found]


def _json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise MetricFailed(f"{path.name}: expected at most {_MAX_JSON_BYTES} bytes")
    try:
        value = strict_json.parse_json(path.read_text("utf-8"))
    except ValueError as error:
        raise MetricFailed(f"{path.name}: {error}") from None
    if not isinstance(value, dict):
        raise MetricFailed(f"{path.name}: expected a JSON object, found {value!r:.60}")
    return value


def _kind(config: Mapping[str, Any]) -> str:
    for name in _ASKS_FOR_CODE:
        if name in config:
            raise MetricFailed(f"config.json has {name}, which names code to run: it is refused")
    kind = config.get("model_type")
    if kind not in KINDS:
        raise MetricFailed(f"expected a model_type of {', '.join(KINDS)}, found {kind!r:.60}")
    return str(kind)


def _tokenizer(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    if path.stat().st_size > _MAX_JSON_BYTES:
        raise MetricFailed(f"{path.name}: expected at most {_MAX_JSON_BYTES} bytes")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001  the library raises no other kind
        raise MetricFailed(f"{path.name} describes no tokeniser: {error!s:.200}") from None
    tokenizer.no_padding()
    return tokenizer


def _longest(kind: str, config: Any, tokenizer_config: Path | None) -> int:
    """The most tokens of a sentence: the model's positions, or fewer if the tokeniser says so."""
    positions = int(config.max_position_embeddings)
    if kind in _COUNT_FROM_PADDING:
        positions -= int(config.pad_token_id) + 1
    stated = _json(tokenizer_config).get("model_max_length") if tokenizer_config else None
    if isinstance(stated, int | float) and 3 <= stated < positions:
        return int(stated)
    return positions


_UNUSED = "pooler."  # weights that no layer's output depends on


def load_language_model(
    kind: str, config: Mapping[str, Any], files: Sequence[Path]
) -> "torch.nn.Module":
    """The model in float32. Refuses missing weights, which the library would draw at random."""
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
