"""Generation settings of a folder's captioner: the implemented ones, by name."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.contract.errors import ConfigInvalid
from service.contract.formats.huggingface.schemas import ConfigPart, validate_part

_FILE = "generation_config.json"
Token = Annotated[int, Field(ge=0, le=1_000_000)]
Tokens = Annotated[list[Token], Field(max_length=100_000)]
Length = Annotated[int, Field(ge=0, le=100_000)]
_DEFAULT_LENGTH = 20  # of what follows START


class GenerationSettings(ConfigPart):
    """Lengths as the library counts them: with START, except those of new tokens."""

    harmless = frozenset(
        [
            *("_from_model_config", "_commit_hash", "transformers_version", "use_cache"),
            *("output_attentions", "output_hidden_states", "output_scores", "output_logits"),
            *("return_dict_in_generate", "temperature", "top_k", "top_p", "top_h", "typical_p"),
            *("min_p", "epsilon_cutoff", "eta_cutoff", "cache_implementation", "cache_config"),
            *("max_cache_len", "is_assistant", "num_assistant_tokens"),
            *("num_assistant_tokens_schedule", "assistant_confidence_threshold"),
            *("prompt_lookup_num_tokens", "max_matching_ngram_size", "assistant_early_exit"),
            *("assistant_lookbehind", "target_lookbehind", "assistant_ensemble_weight"),
            *("speculation_type", "compile_config", "disable_compile", "prefill_chunk_size"),
            *("low_memory", "continuous_batching_config", "dola_layers", "use_mtp"),
        ]
    )

    num_beams: Annotated[int, Field(ge=1, le=100)] = 1
    max_length: Length | None = None
    max_new_tokens: Length | None = None
    min_length: Length = 0
    min_new_tokens: Length | None = None
    length_penalty: Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)] = 1.0
    early_stopping: bool | Literal["never"] = False
    forced_bos_token_id: Token | None = None
    forced_eos_token_id: Token | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 1.0
    no_repeat_ngram_size: Length = 0
    suppress_tokens: Tokens | None = None
    begin_suppress_tokens: Tokens | None = None
    decoder_start_token_id: Token | None = None
    bos_token_id: Token | None = None
    eos_token_id: Token | Tokens | None = None
    pad_token_id: Token | None = None

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        if not self.most >= 1 or self.least > self.most:
            raise ValueError(
                f"expected captions of at least {self.least} and at most {self.most} tokens to be "
                "possible, of one token at the least"
            )
        return self

    @property
    def most(self) -> int:
        """Tokens after START, END counted."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        return _DEFAULT_LENGTH if self.max_length is None else self.max_length - 1

    @property
    def least(self) -> int:
        if self.min_new_tokens is not None:
            return self.min_new_tokens + 1
        return max(0, self.min_length)


# What the library would do otherwise, and these values ask it not to.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "do_sample": (False, None),
    "encoder_repetition_penalty": (1.0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "bad_words_ids": (None, []),
    "num_beam_groups": (1, None),
    "diversity_penalty": (0.0, None),
    "exponential_decay_length_penalty": (None,),
    "guidance_scale": (None, 1, 1.0),
    "sequence_bias": (None,),
    "constraints": (None,),
    "force_words_ids": (None,),
    "penalty_alpha": (None, 0.0),
    "renormalize_logits": (False, None),
    "remove_invalid_values": (False, None),
    "stop_strings": (None,),
    "token_healing": (False, None),
    "watermarking_config": (None,),
    "max_time": (None,),
    "num_return_sequences": (1, None),
}
SPECIAL = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
_OLD_NAMES = (
    *("num_beams", "max_length", "min_length", "length_penalty", "early_stopping"),
    *("repetition_penalty", "no_repeat_ngram_size", "forced_bos_token_id", "forced_eos_token_id"),
    *("suppress_tokens", "begin_suppress_tokens"),
)


def parse_generation(found: Mapping[str, Any], otherwise: Mapping[str, Any]) -> GenerationSettings:
    """Parse the file, and config.json (`otherwise`) for gaps; refuse what is not implemented."""
    for name, neutral in _NEUTRAL.items():
        value = found.get(name)
        if value not in neutral:
            raise ConfigInvalid(
                f"{_FILE}/{name}: {value!r:.60} is not implemented: expected {neutral[0]!r}; leave "
                "it out, or bring captions that you have decoded yourself",
                pointer=f"/{_FILE}/{name}",
            )
    given = {
        name: value for name, value in found.items() if value is not None and name not in _NEUTRAL
    }
    return validate_part(GenerationSettings, {**otherwise, **given}, _FILE)


def read_config_generation(config: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in config.json, where older versions kept them; none beside a file of their own."""
    names = [name for name in (*_OLD_NAMES, *_NEUTRAL) if config.get(name) is not None]
    found = {} if own else {name: config[name] for name in names}
    parse_generation(found, {})
    return {name: value for name, value in found.items() if name not in _NEUTRAL}
