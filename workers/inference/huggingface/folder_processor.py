"""Processor of a folder: a picture and a prompt to a network's inputs, as the library does it.

Tokenizer, chat template (Jinja) and sizes are strangers', so this runs in the sandbox alone. Its
files are read here, by name, and given to the library's classes: it opens no file.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import PrescoreError
from service.contract.formats import huggingface, packages
from service.contract.formats.packages import MOST_TOKENIZER_BYTES, ModelPackage
from service.kernel import process_limits
from workers.inference import tokenizer_child, tokenizer_forms
from workers.inference.huggingface import library
from workers.inference.pictures import decoder
from workers.sandbox.child import Handler, InputRefused
from workers.sandbox.exchange import ExchangeServer

if TYPE_CHECKING:
    from PIL.Image import Image

NetworkArrays = dict[str, NDArray[Any]]

_PICTURES, _PROCESSOR = huggingface.PREPROCESSING
_MOST_TEXT = 300  # characters of a problem
_RENDER_SECONDS = 5.0  # of the processor: templates that people write take milliseconds
_ANSWER = "a"  # stands for a caption where the template is asked how one ends
_OF_CODE = ("auto_map", "tokenizer_class", "processor_class", "backend", "is_local")
_LIKE = {  # types for which the library's tables have no processor, and whose they take
    "cosmos3_omni": "qwen2_vl",
    "glm4v_moe": "glm4v",
    "glm_ocr": "glm46v",
    "glmga": "glm46v",
    "qwen3_vl_moe": "qwen3_vl",
}
_OWN_PROCESSORS = {"kosmos-2": "Kosmos2Processor", "kosmos-2.5": "Kosmos2_5Processor"}


class FolderProcessor:
    """Processor, tokenizer and chat template of a package. `prompt`: its own, or the request's."""

    def __init__(self, package: ModelPackage, prompt: str) -> None:
        from tokenizers import Tokenizer

        transformers = library.import_transformers()

        self._config = _read_json(package, huggingface.CONFIG)
        settings = _read_json(package, huggingface.TOKENIZER_CONFIG)
        own = {name: value for name, value in settings.items() if name not in _OF_CODE}
        text = package.text(huggingface.TOKENIZER, MOST_TOKENIZER_BYTES)
        tokenizer_forms.check_growth(text, huggingface.TOKENIZER)
        own["chat_template"] = self._template = _read_template(package, settings)
        self.tokenizer = Tokenizer.from_str(text)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._own_tokenizer = transformers.TokenizersBackend(
            tokenizer_object=Tokenizer.from_str(text), **own
        )
        found = _read_json(package, _PROCESSOR)
        pictures = found.pop("image_processor", None) or _read_json(package, _PICTURES)
        self._processor = self._build(found, pictures)
        self.prompt = self._complete(prompt)

    def _build(self, found: dict[str, Any], pictures: Mapping[str, Any]) -> Any:
        import transformers

        kind = self._config["model_type"]
        named = str(pictures.get("image_processor_type") or "")
        settings = {
            name: value
            for name, value in pictures.items()
            if name not in (*_OF_CODE, "image_processor_type", "feature_extractor_type")
        }
        looks = getattr(transformers, _choose_picture_processor(kind, named))(**settings)
        name = find_processor(kind)
        own = getattr(transformers, name)
        unchecked = {"check_argument_for_proper_class": lambda *_: None}  # it asks for films, too
        processor: Any = type(name, (own,), unchecked)
        takes = inspect.signature(processor.__init__).parameters
        given = {name: value for name, value in found.items() if name in takes}
        for name in ("patch_size", "vision_feature_select_strategy"):
            if name in takes and given.get(name) is None:
                seen = self._config.get("vision_config", {})
                given[name] = self._config.get(name) or seen.get(name)
        for name in takes.keys() & {"video_processor", "feature_extractor"}:
            given[name] = None  # of films and of sounds
        given |= {"image_processor": looks, "tokenizer": self._own_tokenizer}
        return processor(**{**given, "chat_template": self._template})

    def _complete(self, prompt: str) -> str:
        """The text that the processor takes: the prompt itself where it has the mark of a picture,
        or where there is no template for chats.
        """
        mark = getattr(self._processor, "image_token", None)
        if self._template is None or (mark and str(mark) in prompt):
            return prompt
        return self._render([_ask(prompt)], add_generation_prompt=True)

    def find_end(self, prompt: str) -> int | None:
        """The piece that the template writes after an answer; None where it writes none."""
        if self._template is None:
            return None
        answer = {"role": "assistant", "content": [{"type": "text", "text": _ANSWER}]}
        whole = self._render([_ask(prompt), answer], add_generation_prompt=False)
        before, _, after = whole.rpartition(_ANSWER)
        ids = self._own_tokenizer.encode(after.lstrip(), add_special_tokens=False) if before else []
        return ids[0] if ids else None

    def _render(self, messages: Sequence[Mapping[str, Any]], **how: Any) -> str:
        late = InputRefused(f"the chat template takes longer than {_RENDER_SECONDS:g} s")
        with process_limits.end_after(_RENDER_SECONDS, late):
            return str(self._processor.apply_chat_template(list(messages), tokenize=False, **how))

    def prepare(self, image: "Image") -> NetworkArrays:
        """The network's inputs for a picture, each with a first dimension of its own."""
        found = self._processor(images=[image], text=[self.prompt], return_tensors="pt")
        return {name: value.numpy() for name, value in found.items() if hasattr(value, "numpy")}

    def count_pieces(self) -> int:
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=0) + 1


def _ask(prompt: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}


def find_processor(kind: str) -> str:
    """Find the library's class of processors for a type of model."""
    from transformers.models.auto.processing_auto import (  # type: ignore[attr-defined]
        PROCESSOR_MAPPING_NAMES,
    )

    known = PROCESSOR_MAPPING_NAMES.get(_LIKE.get(kind, kind)) or _OWN_PROCESSORS.get(kind)
    if known is None:
        raise InputRefused(f"the library has no processor for a {kind}")
    return str(known)


def list_picture_processors(kind: str) -> dict[str, str]:
    """List the library's classes that prepare pictures for a type, by what they compute with."""
    from transformers.models.auto.image_processing_auto import (  # type: ignore[attr-defined]
        IMAGE_PROCESSOR_MAPPING_NAMES,
    )

    return dict(IMAGE_PROCESSOR_MAPPING_NAMES.get(_LIKE.get(kind, kind)) or {})


def _choose_picture_processor(kind: str, named: str) -> str:
    """Choose the class that computes with Pillow: the one that the folder names, or the type's."""
    import transformers

    base, known = named.removesuffix("Fast").removesuffix("Pil"), list_picture_processors(kind)
    for name in (f"{base}Pil", known.get("pil", ""), base, known.get("torchvision", "")):
        is_processor = name.endswith(("ImageProcessorPil", "ImageProcessor"))
        if is_processor and hasattr(transformers, name):
            return name
    raise InputRefused(f"the library has no processor of pictures for {named!r:.60}")


def _read_template(package: ModelPackage, settings: Mapping[str, Any]) -> str | None:
    for name in huggingface.TEMPLATES:
        if name in package.files:
            text = package.text(name, huggingface.MOST_JSON_BYTES)
            return str(json.loads(text)["chat_template"]) if name.endswith(".json") else text
    found = settings.get("chat_template")
    if isinstance(found, list):  # several, by name
        found = next((each["template"] for each in found if each["name"] == "default"), None)
    return found


def _read_json(package: ModelPackage, name: str) -> dict[str, Any]:
    if name not in package.files:
        return {}
    found = json.loads(package.text(name, huggingface.MOST_JSON_BYTES))
    if not isinstance(found, dict):
        raise InputRefused(f"{name}: expected a JSON object")
    return found


def serve_processor(
    inputs: Sequence[Path], parameters: Mapping[str, Any], memory: memoryview
) -> tuple[Mapping[str, Any], Handler]:
    """An Opener of the sandbox. `inputs`: the package; `parameters`: "prompt" and "most_pixels".
    What a request gives, and what an answer is too long for, goes through the shared memory.
    """
    try:
        with packages.open_package(inputs[0]) as package:
            processor = FolderProcessor(package, parameters["prompt"])
        end = processor.find_end(parameters["prompt"])
    except (PrescoreError, InputRefused) as refused:
        raise InputRefused(str(refused)) from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  the library raises anything for a folder that is wrong
        raise InputRefused(f"the folder's processor cannot be built: {error!r}") from None

    def prepare(given: bytes) -> tuple[Mapping[str, Any], bytes]:
        return _prepare_picture(processor, given, parameters["most_pixels"])

    performs = {**tokenizer_child.make_performs(processor.tokenizer), "prepare": prepare}
    told = {"prompt": processor.prompt, "end": end, "pieces": processor.count_pieces()}
    return told, ExchangeServer(memory, performs).answer


def _prepare_picture(
    processor: FolderProcessor, given: bytes, most_pixels: int
) -> tuple[Mapping[str, Any], bytes]:
    try:
        image = decoder.decode_rgb(given, most_pixels)
    except Exception as error:  # noqa: BLE001  decoders raise many kinds for a file that is wrong
        return {"undecoded": str(error)[:_MOST_TEXT]}, b""
    found = processor.prepare(image)
    arrays = {name: np.ascontiguousarray(array) for name, array in found.items()}
    told = [[name, str(each.dtype), list(each.shape)] for name, each in arrays.items()]
    return {"tensors": told}, b"".join(each.tobytes() for each in arrays.values())
