"""Schemas of configuration files: harmless fields are dropped, unknown ones are refused."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from service.contract.errors import ConfigInvalid
from service.contract.formats.strict_json import JsonPart
from service.contract.wording import describe_field_error

# Of training, of other tasks, of what a call returns; of generation, which has a file of its own.
HARMLESS = frozenset(
    [
        *("_commit_hash", "_name_or_path", "_attn_implementation_autoset", "architectures"),
        *("dtype", "torch_dtype", "transformers_version", "initializer_range"),
        *("initializer_factor", "finetuning_task", "id2label", "label2id", "num_labels"),
        *("problem_type", "return_dict", "return_dict_in_generate", "output_attentions"),
        *("output_hidden_states", "output_past", "output_scores", "task_specific_params"),
        *("tokenizer_class", "prefix", "torchscript", "use_bfloat16", "use_cache"),
        *("use_return_dict", "tf_legacy_loss", "chunk_size_feed_forward", "gradient_checkpointing"),
        *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id"),
        *("decoder_start_token_id", "is_encoder_decoder", "is_decoder", "do_sample"),
        *("early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature"),
        *("top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty"),
        *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids"),
        *("num_return_sequences", "forced_bos_token_id", "forced_eos_token_id"),
        *("remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens"),
        *("begin_suppress_tokens", "max_length", "min_length", "hidden_dropout_prob"),
        *("attention_probs_dropout_prob", "attention_dropout", "dropout", "classifier_dropout"),
        *("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_activation", "summary_first_dropout"),
        *("summary_proj_to_labels", "summary_type", "summary_use_proj", "label_smoothing"),
    ]
)
# These change the computation, unless they say that it stays as it is.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "pruned_heads": ({}, None),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False, None),
    "rope_scaling": (None,),
    "_remove_final_layer_norm": (False, None),
    "text_config_dict": (None,),
    "vision_config_dict": (None,),
    "position_embedding_type": ("absolute", None),
}


class ConfigPart(JsonPart):
    harmless: ClassVar[frozenset[str]] = frozenset()  # besides those of all parts


Kind = TypeVar("Kind", bound=BaseModel)


def validate_part(kind: type[Kind], found: Mapping[str, Any], where: str) -> Kind:
    """Validate a part of a config. Raises ConfigInvalid for the first wrong or unknown field."""
    try:
        return kind.model_validate(drop_harmless(kind, found, where))
    except ValidationError as error:
        first = error.errors()[0]
        path = _pointer(found, first["loc"])[:200]
        raise ConfigInvalid(
            f"{where}{path}: {describe_field_error(first)}", pointer=f"/{where}{path}"
        ) from None


def _pointer(found: Any, where: Sequence[int | str]) -> str:
    """Pointer without the names by which one of several schemas was chosen: no file has them."""
    told = ""
    for part in where:
        if isinstance(found, dict) and part not in found and part == found.get("model_type"):
            continue
        told += f"/{part}"
        found = found.get(part) if isinstance(found, dict) else None
    return told


def drop_harmless(kind: type[BaseModel], found: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Drop harmless fields; those that the schema knows and unknown ones stay, inside parts too."""
    own: frozenset[str] = getattr(kind, "harmless", frozenset())
    result: dict[str, Any] = {}
    for name, value in found.items():
        field = kind.model_fields.get(name)
        if field is None and (name in HARMLESS or name in own):
            continue
        if field is None and name in _NEUTRAL:
            if value not in _NEUTRAL[name]:
                raise ConfigInvalid(
                    f"{where}/{name}: expected {_NEUTRAL[name][0]!r}, found {value!r:.60}: other "
                    "values are not implemented",
                    pointer=f"/{where}/{name}",
                )
            continue
        result[name] = value
    return result
