"""A captioner that transformers has saved, judged without that library: by bounds and allow-lists.

Its files are a package (folder, tar, zip): config.json, model.safetensors or its parts,
tokenizer.json, preprocessor_config.json or processor_config.json, and generation_config.json,
prompt.json and a template of chats where there are. The library judges the rest when a task opens
the package in the sandbox: whether the tensors are those of the network that config.json describes.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from prescore import foreign
from service.contract.errors import ConfigInvalid, InvalidPackage
from service.contract.formats import strict_json
from service.contract.formats.huggingface import bounds, generation, image_processors, tensors
from service.contract.formats.huggingface.generation import GenerationSettings
from service.contract.formats.huggingface.schemas import validate_part
from service.contract.formats.huggingface.tensors import LocatedTensor
from service.contract.formats.packages import ModelPackage
from service.contract.formats.preprocessing import PicturePreprocessing

__all__ = [
    "CONFIG",
    "TOKENIZER",
    "GenerationSettings",
    "PicturePreprocessing",
    "TransformersCaptioner",
    "check_transformers_config",
    "validate_transformers",
]

CONFIG, TOKENIZER, PROMPT_FILE = "config.json", "tokenizer.json", "prompt.json"
WITHOUT_PROMPT = ("vision-encoder-decoder", "blip", "git")  # captions follow the picture itself
DEFAULT_PROMPT = "Describe the image in one sentence."
_USUAL_PROMPTS = {"blip-2": ""}  # of types that need no words before a caption
_GENERATION = "generation_config.json"
PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
TOKENIZER_CONFIG = "tokenizer_config.json"
TEMPLATES = ("chat_template.jinja", "chat_template.json")
MOST_JSON_BYTES, _MOST_PROMPT_BYTES = 4_000_000, 20_000
_ASKS_FOR_CODE = ("auto_map", "custom_pipelines", "quantization_config")
_MOST_TOKENS = 64  # of a caption after a prompt, where the folder names no number
_PATCHES = 400  # of a picture, where the config names no size
_WORDS = re.compile(r"(.*\.)?(lm_head|embed_tokens|word_embeddings|wte|shared|output)\.weight")
# The prompt would count in lengths, and nothing is left to chance.
_NOT_OF_CAPTIONS = ("max_length", "min_length", "do_sample")


@dataclass(frozen=True)
class TransformersCaptioner:
    """Captioner that a package describes; no tensor is read. `prompt` is None, and `preprocessing`
    is not, where captions follow the picture itself.
    """

    config: Mapping[str, Any]
    generation: GenerationSettings
    tensors: Mapping[str, LocatedTensor]
    preprocessing: PicturePreprocessing | None
    prompt: str | None

    @property
    def model_type(self) -> str:
        return str(self.config["model_type"])

    @property
    def architecture(self) -> str:
        """Architecture as people read it: `vit-gpt2`."""
        parts = [self.config.get(name) for name in ("encoder", "decoder")]
        kinds = [str(part.get("model_type")) for part in parts if isinstance(part, dict)]
        return "-".join(kinds) or self.model_type

    @property
    def parameters(self) -> int:
        return sum(
            math.prod(each.entry.shape)
            for name, each in self.tensors.items()
            if not tensors.is_buffer(name)
        )

    @property
    def vocabulary(self) -> int:
        """Pieces that it knows: rows of its table of words."""
        named = (each.entry for name, each in self.tensors.items() if _WORDS.fullmatch(name))
        return max((entry.shape[0] for entry in named if entry.shape), default=0)

    @property
    def products(self) -> int:
        """Multiply-adds of one picture, about."""
        sizes = [*_find(self.config, "image_size"), *_find(self.config, "patch_size")]
        sides = [size[0] if isinstance(size, list) and size else size for size in sizes]
        whole = len(sides) > 1 and all(isinstance(side, int) and side > 0 for side in sides)
        return self.parameters * ((sides[0] // sides[1]) ** 2 if whole else _PATCHES)

    @property
    def longest(self) -> int:
        """Tokens of a caption, END counted."""
        most = self.generation.most
        if self.prompt is not None:
            most = self.generation.max_new_tokens or _MOST_TOKENS
        places = [
            *_find(self.config, "max_position_embeddings"),
            *_find(self.config, "n_positions"),
        ]
        return min([most, *(each for each in places if isinstance(each, int) and each > 0)])

    @property
    def start(self) -> int | None:
        """Id of the token that a decoder reads first; None where only the library knows it."""
        found = self.generation
        start = found.decoder_start_token_id
        return found.bos_token_id if start is None else start

    @property
    def ends(self) -> list[int]:
        """Ids that end a caption; empty where only the library knows it."""
        found = self.generation.eos_token_id
        return [found] if isinstance(found, int) else list(found or ())


def _find(config: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Find a field of the config or, first, of its parts."""
    for part in config.values():
        if isinstance(part, dict):
            yield from _find(part, name)
    if config.get(name) is not None:
        yield config[name]


def validate_transformers(package: ModelPackage) -> TransformersCaptioner:
    """Validate a captioner. Raises an InvalidCheckpoint: what is wrong, where, and what to do."""
    config = check_transformers_config(package)
    own = _json(package, _GENERATION) if _GENERATION in package.files else {}
    is_prompted = config["model_type"] not in WITHOUT_PROMPT
    otherwise = _read_special(config) | generation.read_config_generation(config, own)
    if is_prompted:
        own, otherwise = (
            {name: value for name, value in each.items() if name not in _NOT_OF_CAPTIONS}
            for each in (own, otherwise)
        )
    searched = generation.parse_generation(own, otherwise)
    preprocessing = None if is_prompted else _preprocessing(package)
    prompt = _read_prompt(package, config, is_prompted=is_prompted)
    if TOKENIZER not in package.files:
        raise InvalidPackage(
            f"expected {TOKENIZER}, the tokenizer in one file: save_pretrained of the (fast) "
            f"tokenizer writes it; found {', '.join(sorted(package.files))[:300]}"
        )
    found = tensors.locate_tensors(package)
    return TransformersCaptioner(config, searched, found, preprocessing, prompt)


def check_transformers_config(package: ModelPackage) -> dict[str, Any]:
    """Check config.json; needs no other file."""
    config = _json(package, CONFIG)
    for name in _ASKS_FOR_CODE:
        if config.get(name) is not None:
            raise ConfigInvalid(
                f"{CONFIG}: {name} asks for code of the folder's own, or for packed weights: "
                "expected a model of transformers itself, with plain weights (`dequantize`, then "
                f"save_pretrained), {foreign.COLUMNS}",
                pointer=f"/{CONFIG}/{name}",
            )
    if refusal := foreign.refusal_of_config(config):
        raise ConfigInvalid(f"{CONFIG}: {refusal}", pointer=f"/{CONFIG}/model_type")
    bounds.check_bounds(config, CONFIG)
    return config


def _read_special(config: Mapping[str, Any]) -> dict[str, Any]:
    """Read ids of special tokens in config.json, as generation_config.json calls them."""
    found: dict[str, Any] = {}
    for part in (config.get("decoder"), config.get("text_config"), config):
        if isinstance(part, dict):
            named = {name: part.get(name) for name in generation.SPECIAL}
            found |= {name: value for name, value in named.items() if value is not None}
    return found


def _preprocessing(package: ModelPackage) -> PicturePreprocessing:
    name = next((each for each in PREPROCESSING if each in package.files), None)
    if name is None:
        raise InvalidPackage(
            f"expected {PREPROCESSING[0]}, which says how pictures are resized and normalised: "
            "save_pretrained of the image processor writes it"
        )
    found = _json(package, name)
    inner = found.get("image_processor")
    return image_processors.parse_image_processor(inner if isinstance(inner, dict) else found, name)


class _PromptFile(strict_json.JsonPart):
    prompt: Annotated[str, Field(max_length=1_000)]


def _read_prompt(
    package: ModelPackage, config: Mapping[str, Any], *, is_prompted: bool
) -> str | None:
    """Read a folder's prompt, or assume a usual one where its template says how a chat begins."""
    if PROMPT_FILE in package.files:
        if not is_prompted:
            raise InvalidPackage(
                f"{PROMPT_FILE}: expected none, since captions of a {config['model_type']} follow "
                "the picture without a prompt: leave it out, or bring columns",
                pointer=f"/{PROMPT_FILE}",
            )
        written = _json(package, PROMPT_FILE, _MOST_PROMPT_BYTES)
        return validate_part(_PromptFile, written, PROMPT_FILE).prompt
    if not is_prompted:
        return None
    has_template = any(name in package.files for name in TEMPLATES)
    if not has_template and TOKENIZER_CONFIG in package.files:
        has_template = bool(_json(package, TOKENIZER_CONFIG).get("chat_template"))
    usual = _USUAL_PROMPTS.get(config["model_type"], DEFAULT_PROMPT if has_template else None)
    if usual is None:
        raise InvalidPackage(
            f"expected {PROMPT_FILE} beside config.json, or a template of chats: a "
            f"{config['model_type']} reads a prompt before a caption, and no file says which. "
            'Write {"prompt": "…"} with what you give its processor, such as "caption en" for '
            'PaliGemma or "<CAPTION>" for Florence-2',
            pointer=f"/{PROMPT_FILE}",
        )
    return usual


def _json(package: ModelPackage, name: str, most: int = MOST_JSON_BYTES) -> dict[str, Any]:
    return strict_json.parse_object(package.text(name, most), name, f"/{name}")
