"""A captioner that transformers has saved, judged without that library: by allow-lists alone.

Its files are a package (folder, tar, zip): config.json, model.safetensors or its parts,
tokenizer.json, preprocessor_config.json, and generation_config.json where there is one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from prescore import foreign
from service.contract.errors import ConfigInvalid, InvalidPackage
from service.contract.formats import strict_json
from service.contract.formats.huggingface import generation, image_processors, tensors
from service.contract.formats.huggingface.blip import Blip2Schema, BlipSchema
from service.contract.formats.huggingface.family import TransformersFamily
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.git import GitSchema
from service.contract.formats.huggingface.rotary import LlavaSchema, PaliGemmaSchema
from service.contract.formats.huggingface.schemas import ConfigPart, validate_part
from service.contract.formats.huggingface.tensors import LocatedTensor
from service.contract.formats.huggingface.vision_encoder_decoder import VisionEncoderDecoderSchema
from service.contract.formats.packages import ModelPackage
from service.contract.formats.preprocessing import PicturePreprocessing

__all__ = [
    "CONFIG",
    "TOKENIZER",
    "GenerationSettings",
    "PicturePreprocessing",
    "TransformersCaptioner",
    "TransformersFamily",
    "check_transformers_config",
    "validate_transformers",
]

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
_GENERATION = "generation_config.json"
_PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
_MOST_JSON = 4_000_000
_ASKS_FOR_CODE = ("auto_map", "custom_pipelines", "quantization_config")


@dataclass(frozen=True)
class TransformersCaptioner:
    """Captioner that a folder describes; no tensor is read. `start` and `end`: ids of pieces;
    after a prompt, captions start with its last piece.
    """

    family: TransformersFamily
    generation: GenerationSettings
    preprocessing: PicturePreprocessing
    tensors: Mapping[str, LocatedTensor]
    start: int
    end: int
    prompt: str | None = None

    @property
    def parameters(self) -> int:
        return sum(
            math.prod(each.entry.shape)
            for name, each in self.tensors.items()
            if not tensors.is_buffer(name)
        )


def validate_transformers(package: ModelPackage) -> TransformersCaptioner:
    """Validate a captioner. Raises an InvalidCheckpoint: what is wrong, where, and what to do."""
    config, family = check_transformers_config(package)
    own = _json(package, _GENERATION) if _GENERATION in package.files else {}
    searched = generation.parse_generation(
        own, family.special(config) | generation.read_config_generation(config, own)
    )
    if family.in_places:
        _check_alone(searched)
    start, end = family.edges(searched)
    for name, token in (("start", start), ("end", end)):
        if not 0 <= token < family.vocabulary:
            raise ConfigInvalid(
                f"the token of a caption's {name}: expected one of {family.vocabulary}, found "
                f"{token}",
                pointer=f"/{CONFIG}",
            )
    preprocessing = _preprocessing(package, family)
    prompt = read_prompt(package, family)
    if TOKENIZER not in package.files:
        raise InvalidPackage(
            f"expected {TOKENIZER}, the tokenizer in one file: save_pretrained of the (fast) "
            f"tokenizer writes it; found {', '.join(sorted(package.files))[:300]}"
        )
    found = tensors.locate_tensors(package, family)
    return TransformersCaptioner(family, searched, preprocessing, found, start, end, prompt)


def check_transformers_config(package: ModelPackage) -> tuple[dict[str, Any], TransformersFamily]:
    """config.json, and the family that it describes; needs no other file."""
    config = _json(package, CONFIG)
    for name in _ASKS_FOR_CODE:
        if config.get(name) is not None:
            raise ConfigInvalid(
                f"{CONFIG}: {name} asks for code of the folder's own, or for packed weights: "
                "expected a model of transformers itself, with plain weights",
                pointer=f"/{CONFIG}/{name}",
            )
    kind = config.get("model_type")
    if refusal := foreign.refusal_of_type(kind):
        raise ConfigInvalid(f"{CONFIG}: {refusal}", pointer=f"/{CONFIG}/model_type")
    return config, validate_part(FAMILIES_BY_MODEL_TYPE[str(kind)], config, CONFIG)


def _check_alone(searched: GenerationSettings) -> None:
    """Refuse settings that would count a picture's places and a prompt besides captions."""
    lengths = {"max_length": searched.max_length, "min_length": searched.min_length}
    repeated = {
        "repetition_penalty": searched.repetition_penalty != 1.0,
        "no_repeat_ngram_size": searched.no_repeat_ngram_size,
    }
    for name, value in (lengths | repeated).items():
        if value:
            instead = "to be left out"
            if name in lengths:
                instead = f"{name.replace('length', 'new_tokens')}, which counts captions"
            raise ConfigInvalid(
                f"{_GENERATION}/{name} counts what stands before captions too: expected {instead}",
                pointer=f"/{_GENERATION}/{name}",
            )


def _preprocessing(package: ModelPackage, family: TransformersFamily) -> PicturePreprocessing:
    name = next((each for each in _PREPROCESSING if each in package.files), None)
    if name is None:
        raise InvalidPackage(
            f"expected {_PREPROCESSING[0]}, which says how pictures are resized and normalised: "
            "save_pretrained of the image processor writes it"
        )
    found = _json(package, name)
    inner = found.get("image_processor")
    preprocessing = image_processors.parse_image_processor(
        inner if isinstance(inner, dict) else found, name
    )
    if preprocessing.shape != (family.image_size, family.image_size):
        raise ConfigInvalid(
            f"{name}: pictures become {list(preprocessing.shape)}, the model looks at "
            f"{[family.image_size] * 2}",
            pointer=f"/{name}",
        )
    return preprocessing


def _json(package: ModelPackage, name: str, most: int = _MOST_JSON) -> dict[str, Any]:
    return strict_json.parse_object(package.text(name, most), name, f"/{name}")


FAMILIES_BY_MODEL_TYPE: Mapping[str, type[TransformersFamily]] = {
    "vision-encoder-decoder": VisionEncoderDecoderSchema,
    "blip": BlipSchema,
    "blip-2": Blip2Schema,
    "git": GitSchema,
    "llava": LlavaSchema,
    "paligemma": PaliGemmaSchema,
}


PROMPT_FILE = "prompt.json"
_MOST_PROMPT_BYTES = 20_000


class _PromptFile(ConfigPart):
    prompt: Annotated[str, Field(min_length=1, max_length=1_000)]


def read_prompt(package: ModelPackage, family: TransformersFamily) -> str | None:
    """Read a folder's prompt, as the library's processor takes it; None where the family has none.
    Nothing is assumed, since another prompt is another captioner. Raises an InvalidCheckpoint that
    says what to do.
    """
    there = PROMPT_FILE in package.files
    if family.example_prompt is None:
        if there:
            raise InvalidPackage(
                f"{PROMPT_FILE}: expected none, since captions of a {family.model_type} follow the "
                "picture without a prompt: leave it out, or bring columns",
                pointer=f"/{PROMPT_FILE}",
            )
        return None
    if not there:
        raise InvalidPackage(
            f"expected {PROMPT_FILE} beside config.json: a {family.model_type} reads a prompt "
            'before a caption, and no file of the library says which. Write {"prompt": "…"} with '
            f"what you give its processor, such as {family.example_prompt!r}",
            pointer=f"/{PROMPT_FILE}",
        )
    written = _json(package, PROMPT_FILE, _MOST_PROMPT_BYTES)
    return validate_part(_PromptFile, written, PROMPT_FILE).prompt
