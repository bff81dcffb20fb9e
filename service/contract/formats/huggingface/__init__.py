"""A captioner that transformers has saved, judged without that library: by allow-lists alone.

Its files are a package (folder, tar, zip): config.json, model.safetensors or its parts,
tokenizer.json, preprocessor_config.json, and generation_config.json where there is one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prescore import foreign
from service.contract.errors import ConfigInvalid, InvalidPackage
from service.contract.formats import strict_json
from service.contract.formats.huggingface import generation, image_processors, prompts, tensors
from service.contract.formats.huggingface.families import FAMILIES
from service.contract.formats.huggingface.generation import Generation
from service.contract.formats.huggingface.parts import Family
from service.contract.formats.huggingface.reading import checked
from service.contract.formats.huggingface.tensors import Found
from service.contract.formats.packages import Package
from service.contract.formats.preprocessing import Preprocessing

__all__ = [
    "CONFIG",
    "TOKENIZER",
    "Captioner",
    "Family",
    "Generation",
    "Preprocessing",
    "check_config",
    "judge",
]

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
_GENERATION = "generation_config.json"
_PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
_MOST_JSON = 4_000_000
_ASKS_FOR_CODE = ("auto_map", "custom_pipelines", "quantization_config")


@dataclass(frozen=True)
class Captioner:
    """What a folder says of its captioner; no tensor is read. `start` and `end`: ids of pieces;
    after a prompt, captions start with its last piece.
    """

    family: Family
    generation: Generation
    preprocessing: Preprocessing
    tensors: Mapping[str, Found]
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


def judge(package: Package) -> Captioner:
    """Raises an InvalidCheckpoint that says what is wrong, where, and what to do."""
    config, family = check_config(package)
    own = _json(package, _GENERATION) if _GENERATION in package.files else {}
    searched = generation.of(own, family.special(config) | generation.in_config(config, own))
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
    prompt = prompts.of(package, family)
    if TOKENIZER not in package.files:
        raise InvalidPackage(
            f"expected {TOKENIZER}, the tokenizer in one file: save_pretrained of the (fast) "
            f"tokenizer writes it; found {', '.join(sorted(package.files))[:300]}"
        )
    found = tensors.judged(package, family)
    return Captioner(family, searched, preprocessing, found, start, end, prompt)


def check_config(package: Package) -> tuple[dict[str, Any], Family]:
    """config.json, and the family that it describes; needs no other file."""
    config = _json(package, CONFIG)
    for name in _ASKS_FOR_CODE:
        if config.get(name) is not None:
            raise ConfigInvalid(
                f"{CONFIG}: {name} asks for code of the folder's own, or for packed weights: "
                "expected a model of transformers itself, with plain weights",
                pointer=f"/{CONFIG}/{name}",
            )
    return config, _family(config)


def _family(config: Mapping[str, Any]) -> Family:
    kind = config.get("model_type")
    if refusal := foreign.refusal_of_type(kind):
        raise ConfigInvalid(f"{CONFIG}: {refusal}", pointer=f"/{CONFIG}/model_type")
    return checked(FAMILIES[str(kind)], config, CONFIG)


def _check_alone(searched: Generation) -> None:
    """Raises for what would count a picture's places and a prompt besides captions."""
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


def _preprocessing(package: Package, family: Family) -> Preprocessing:
    name = next((each for each in _PREPROCESSING if each in package.files), None)
    if name is None:
        raise InvalidPackage(
            f"expected {_PREPROCESSING[0]}, which says how pictures are resized and normalised: "
            "save_pretrained of the image processor writes it"
        )
    found = _json(package, name)
    inner = found.get("image_processor")
    preprocessing = image_processors.read(inner if isinstance(inner, dict) else found, name)
    if preprocessing.shape != (family.image_size, family.image_size):
        raise ConfigInvalid(
            f"{name}: pictures become {list(preprocessing.shape)}, the model looks at "
            f"{[family.image_size] * 2}",
            pointer=f"/{name}",
        )
    return preprocessing


def _json(package: Package, name: str) -> dict[str, Any]:
    try:
        value = strict_json.parse(package.text(name, _MOST_JSON))
    except strict_json.NotJson as error:
        raise ConfigInvalid(f"{name}: {error}", pointer=f"/{name}{error.where}") from None
    if not isinstance(value, dict):
        raise ConfigInvalid(f"{name}: expected an object, found {value!r:.60}", pointer=f"/{name}")
    return value
