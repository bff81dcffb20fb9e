"""Reader of a network that transformers calls image-text-to-text: picture and prompt are read once
with a cache, captions behind it. No code here belongs to one family of models.
"""

import copy
import inspect
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from service.contract.errors import UnusableCheckpoint
from workers.inference.devices import Product
from workers.inference.huggingface import library
from workers.inference.huggingface.caption_table import ReadRows, tabulate_captions
from workers.inference.inputs import NetworkInputs
from workers.inference.packing import Packed

_BLIND = -1e30  # as a mask is added
_SAME = 1e-3  # of the largest logit: what float32 may differ by
_IDS, _MASK, _POSITIONS, _STARTS = (
    *("input_ids", "attention_mask", "position_ids", "decoder_input_ids"),
)


@dataclass(frozen=True)
class LogitChange:
    """Change of logits after their product: times `factor`, then bound by `cap` (tanh)."""

    factor: float = 1.0
    cap: float | None = None

    def __call__(self, logits: Tensor) -> Tensor:
        if self.factor != 1.0:
            logits = logits.mul_(self.factor)
        if self.cap is not None:
            logits = logits.div_(self.cap).tanh_().mul_(self.cap)
        return logits


@dataclass(frozen=True)
class ReadPrompts:
    """State after picture and prompt, and after the words that followed: a row for each image or
    caption. `places`: tokens read so far; `shifts`: how far positions lie from that, of networks
    that count them in three dimensions; `hidden`: rows that decide the next word.
    """

    cache: Any
    hidden: Tensor
    places: int
    shifts: Tensor | None
    encoded: Any = None  # an encoder's output, which stays the same for all words
    kept: Any = None  # inputs that go on behind the prompt

    def select(self, rows: Tensor) -> "ReadPrompts":
        shifts = None if self.shifts is None else self.shifts[rows]
        return replace(
            self,
            cache=select_cache(self.cache, rows),
            hidden=self.hidden[rows],
            shifts=shifts,
            encoded=_select(self.encoded, rows),
            kept=_select(self.kept, rows),
        )


class ImageTextReader:
    """`start`: the token that a decoder with an encoder reads first."""

    def __init__(self, model: Any, start: int | None = None) -> None:
        self.network = model
        self._takes = {*inspect.signature(model.forward).parameters} - {"labels"}
        part, self._answer = _READ_ON_BY.get(model.config.model_type, ("", ""))
        self._reads_on = getattr(model, part) if part else model
        self._counts = _POSITIONS in inspect.signature(self._reads_on.forward).parameters
        self._is_encoded = bool(model.config.is_encoder_decoder)
        self._start = start
        self._holder = next((each for each in _inner(model) if hasattr(each, "rope_deltas")), None)
        head = library.find_output_layer(model)
        self._head = head
        self.device: torch.device = head.weight.device
        bias = getattr(head, "bias", None)
        self.product = Product(head.weight.detach().t(), None if bias is None else bias.detach())
        self._known = int(model.get_input_embeddings().weight.shape[0])
        self.change: LogitChange | None = None
        self.packs = False
        self._first = _FIRST_POSITION.get(model.config.model_type, 0)

    def choose_inputs(self, inputs: NetworkInputs) -> NetworkInputs:
        """Leave out what the network does not take, and move the rest to its device. Raises
        UnusableCheckpoint for a piece that it does not know.
        """
        chosen = {name: each for name, each in inputs.items() if name in self._takes}
        if (ids := chosen.get(_IDS)) is not None and ids.numel():
            least, most = (int(each) for each in ids.aminmax())
            if not 0 <= least <= most < self._known:
                raise UnusableCheckpoint(
                    f"the prompt has pieces {least} to {most}, the network knows {self._known:,}: "
                    "the tokenizer is not the model's"
                )
        return {name: each.to(self.device) for name, each in chosen.items()}

    def list_written(self, inputs: NetworkInputs) -> tuple[int, ...]:
        """List the tokens that stand before a caption, where its words are written."""
        if self._is_encoded:
            assert self._start is not None
            return (self._start,)
        return tuple(inputs[_IDS][0].tolist())

    @property
    def reads_one_picture(self) -> bool:
        """Tell if no pictures are read together."""
        return self.network.config.model_type in _ONE_PICTURE

    @property
    def vocabulary(self) -> int:
        return self.product.weight.shape[1]

    def logits(self, hidden: Tensor) -> Tensor:
        assert self.change is not None
        return self.change(self.product(hidden))

    def learn(self, inputs: NetworkInputs) -> None:
        """Learn, the first time, how the network computes. Raises UnusableCheckpoint."""
        if self.change is None:
            self.change = self._learn_change(inputs)
            self.packs = self._learn_packing(inputs)

    def _learn_change(self, inputs: NetworkInputs) -> LogitChange:
        """Learn how logits follow from hidden rows, by one pass of the network's own: by the
        product, or by a change of it that the config names.
        """
        given = {**inputs, **self._begin(len(next(iter(inputs.values()))))}
        own = self._run(given).logits[:, -1].float()
        with self._collected() as found:
            self._run(given)
        product = self.product(found[0][:, -1])
        for change in _list_changes(self.network.config):
            if (change(product.clone()) - own).abs().max() <= _SAME * own.abs().max():
                return change
        raise UnusableCheckpoint(
            f"the logits of a {self.network.config.model_type} do not follow from its last hidden "
            "rows in a way that is known: write columns where the model runs (prescore.Recorder)"
        )

    def _learn_packing(self, inputs: NetworkInputs) -> bool:
        """Learn whether captions may stand beside each other in one row, by trying it. A network
        with windows or states reads what lies behind them.
        """
        if self._is_encoded or not _sees_all(self.network.config):
            return False
        first = torch.arange(2, 12, device=self.device) % self.vocabulary
        table = tabulate_captions(Packed(first, [2] * 5, torch.zeros(2), np.arange(10)))
        (apart,) = (
            self.read_captions(self.read_prompts(inputs), each) for each in table.split([0], 2)
        )
        try:
            beside = self.read_packed(self.read_prompts(inputs), table.pack([0]))
        except Exception:  # noqa: BLE001  the library may raise anything for such a mask
            return False
        beside, apart = beside.flatten(0, 1), apart.flatten(0, 1)
        return bool((beside - apart).abs().max() <= _SAME * apart.abs().max())

    def read_prompts(self, inputs: NetworkInputs) -> ReadPrompts:
        """Read pictures and prompts; all of them have the same shapes."""
        if self._holder is not None:
            self._holder.rope_deltas = None
        first = inputs[_IDS] if _IDS in inputs else next(iter(inputs.values()))
        many, places = first.shape[:2]
        with self._collected() as found:
            out = self._run({**inputs, **self._begin(many)}, use_cache=True)
            out = getattr(out, self._answer) if self._answer else out
        shifts = None if self._holder is None else self._holder.rope_deltas
        if shifts is not None:
            shifts = shifts.reshape(-1, 1).expand(many, 1)
        encoded, hidden = None, found[0][:, -1]
        if self._is_encoded:
            encoded, places = (out.encoder_last_hidden_state, inputs.get(_MASK)), 1
        kept = {name: inputs[name][:, -1:] for name in _KEPT if name in inputs}
        return ReadPrompts(out.past_key_values, hidden, places, shifts, encoded, kept)

    def read_captions(self, state: ReadPrompts, rows: ReadRows) -> Tensor:
        """Read captions, filled up behind their ends, each in a row of its own: (n, m, width)."""
        many = torch.arange(len(rows.counts), device=self.device)
        own = state.select(many.repeat_interleave(rows.counts, output_size=len(rows.words)))
        return self._read(own, rows.words)[0]

    def read_packed(self, state: ReadPrompts, rows: ReadRows) -> Tensor:
        """Read captions in the rows of their images, each blind for the others: (n, m, width)."""
        mask = torch.zeros_like(rows.sees, dtype=state.hidden.dtype)
        mask = functional.pad(mask.masked_fill_(~rows.sees, _BLIND), (state.places, 0))[:, None]
        return self._read(state, rows.words, rows.times, mask)[0]

    def read_next_words(self, state: ReadPrompts, words: Tensor) -> ReadPrompts:
        """Read one word in each row. The cache of the state before is used up."""
        hidden, cache = self._read(state, words[:, None])
        return replace(state, cache=cache, hidden=hidden[:, -1], places=state.places + 1)

    def _read(
        self,
        state: ReadPrompts,
        words: Tensor,
        times: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        many, length = words.shape
        if times is None:
            times = torch.arange(length, device=words.device).expand(many, -1)
        if mask is None:
            mask = words.new_ones(many, state.places + length)
        times = times + (state.places + self._first)
        given: dict[str, Any] = {"past_key_values": state.cache}
        if self._is_encoded:
            from transformers.modeling_outputs import BaseModelOutput

            hidden, of_pictures = state.encoded
            given |= {_STARTS: words, "encoder_outputs": BaseModelOutput(hidden)}
            given |= {} if of_pictures is None else {_MASK: of_pictures}
        else:
            given |= {_IDS: words, _MASK: mask}
            given |= {
                name: each.expand(-1, length, *[-1] * (each.dim() - 2))
                for name, each in state.kept.items()
            }
            if state.shifts is not None:
                assert self._holder is not None
                self._holder.rope_deltas = state.shifts
                times = (times + state.shifts).expand(3, -1, -1)
            given |= {_POSITIONS: times} if self._counts else {}
        with self._collected() as found:
            out = self._reads_on(**given, use_cache=True, return_dict=True)
        return found[0], out.past_key_values

    def _begin(self, many: int) -> dict[str, Tensor]:
        """Inputs of a decoder beside its encoder's."""
        if not self._is_encoded:
            return {}
        assert self._start is not None
        return {_STARTS: torch.full((many, 1), self._start, device=self.device)}

    def _run(self, given: Mapping[str, Any], **more: Any) -> Any:
        return self.network(**given, **{"use_cache": False, "return_dict": True, **more})

    @contextmanager
    def _collected(self) -> Iterator[list[Tensor]]:
        """Collect the rows that the output layer is given, in place of their logits: those of all
        words at once take gigabytes.
        """
        found: list[Tensor] = []

        def collect(hidden: Tensor) -> Tensor:
            found.append(hidden)
            return hidden.new_zeros(*hidden.shape[:-1], 1)

        self._head.forward = collect
        try:
            yield found
        finally:
            del self._head.forward


# Part of a network that reads on behind pictures, and what holds its cache in the first answer.
_READ_ON_BY = {
    "blip-2": ("language_model", "language_model_outputs"),
    "instructblip": ("language_model", "language_model_outputs"),
    "kosmos-2": ("text_model", ""),
    "kosmos-2.5": ("text_model", ""),
}
_FIRST_POSITION = {"paligemma": 1, "kosmos-2": 2, "kosmos-2.5": 2}
_ONE_PICTURE = ("minicpm_ocr", "minicpmv4_6", "minicpmv4_7")  # patches of all are in one row
_KEPT = ("cross_attention_mask",)  # inputs with a row for each word, the last of which goes on


def _inner(model: Any) -> Iterator[Any]:
    yield model
    if hasattr(model, "model"):
        yield model.model


def _list_changes(config: Any) -> list[LogitChange]:
    """Changes of logits that fields of a config may ask for; some networks ignore theirs."""
    text = config.get_text_config(decoder=True)
    cap = getattr(text, "final_logit_softcapping", None)
    factors = [1.0]
    if scale := getattr(text, "logit_scale", None):
        factors.append(scale)
    if scaling := getattr(text, "logits_scaling", None):
        factors.append(1 / scaling)
    if getattr(text, "tie_word_embeddings", False) or hasattr(text, "d_model"):
        factors.append(1 / math.sqrt(getattr(text, "hidden_size", None) or text.d_model))
    return [
        LogitChange(factor, bound) for factor in factors for bound in dict.fromkeys((cap, None))
    ]


def select_cache(cache: Any, rows: Tensor) -> Any:
    """Rows of a cache of any kind, each any number of times: of every tensor that it holds."""
    selected = copy.copy(cache)
    for name, value in vars(cache).items():
        setattr(selected, name, _select(value, rows))
    return selected


def _select(value: Any, rows: Tensor) -> Any:
    if isinstance(value, Tensor):
        return value[rows.to(value.device)] if value.dim() > 1 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_select(each, rows) for each in value)
    if isinstance(value, dict):
        return {name: _select(each, rows) for name, each in value.items()}
    return select_cache(value, rows) if _is_cache(value) else value


def _is_cache(value: Any) -> bool:
    """Tell if it is a part of the library's caches, of which new models have new kinds."""
    kind = type(value)
    return kind.__module__.startswith("transformers.") and not kind.__name__.endswith("Config")


def count_cache_bytes(value: Any) -> int:
    """Count the bytes of the tensors that a cache holds."""
    if isinstance(value, Tensor):
        return value.nbytes if value.dim() > 1 else 0
    if isinstance(value, dict):
        return sum(map(count_cache_bytes, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(count_cache_bytes, value))
    return count_cache_bytes(vars(value)) if _is_cache(value) else 0


def _sees_all(config: Any) -> bool:
    """Tell if each word reads all words before it, in every layer."""
    text = config.get_text_config(decoder=True)
    kinds = getattr(text, "layer_types", None) or ["full_attention"]
    has_window = getattr(text, "sliding_window", None) and getattr(text, "use_sliding_window", True)
    return set(kinds) == {"full_attention"} and not has_window
