"""The manifest of a bundle, made of a captioner's description, which is judged first."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.contract.errors import RequestRefused
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.huggingface import image_processors
from service.contract.formats.huggingface.schemas import validate_part
from service.contract.formats.onnx_bundles import OnnxPreprocessing
from service.contract.formats.preprocessing import PicturePreprocessing
from workers.export.captioner import ExportedCaptioner

LOOK, STEP, SCORE = "look.onnx", "step.onnx", "score.onnx"
_WORDS, _PIECES = "vocabulary.json", "tokenizer.json"
_CHANNELS = 3
_OF_TRANSFORMERS = "image_processor_type"


@dataclass(frozen=True)
class BundleTokens:
    """Description of a bundle's tokens, and the file in which they stand."""

    said: Mapping[str, Any]
    file: str
    content: str


def read_preprocessing(given: ExportedCaptioner) -> OnnxPreprocessing | None:
    """Read the preprocessing of pictures; None: it looks at features."""
    if given.preprocessing is None:
        return None
    found = json.loads(json.dumps(dict(given.preprocessing)))  # without enums and tuples
    if _OF_TRANSFORMERS in found:
        processor = image_processors.parse_image_processor(found, "preprocessing")
        found = processor.model_dump(mode="json", include={*PicturePreprocessing.model_fields})
    return validate_part(OnnxPreprocessing, found, "preprocessing")


def read_image_shape(given: ExportedCaptioner) -> tuple[int, ...]:
    """Read the shape of one image as `look` takes it."""
    pictures = read_preprocessing(given)
    if (pictures is None) == (given.feature_size is None):
        raise RequestRefused(
            "expected either feature_size, of image features, or preprocessing, of pictures; found "
            f"{'none' if pictures is None else 'both'}"
        )
    if pictures is None:
        assert given.feature_size is not None
        return (given.feature_size,)
    return (_CHANNELS, *pictures.shape)


def describe_tokens(given: ExportedCaptioner, size: int) -> BundleTokens:
    """`size`: of a step's logits."""
    if isinstance(given.tokenizer, str):
        return _words(given, given.tokenizer, size)
    return _pieces(given, size)


def _words(given: ExportedCaptioner, tokenizer: str, size: int) -> BundleTokens:
    if given.words is None or given.unknown is None:
        raise RequestRefused(
            "expected words and unknown, or a tokenizer of pieces: one of the library tokenizers, "
            "or a fast one of transformers"
        )
    words = list(given.words)
    if len(words) != size:
        raise RequestRefused(f"step: expected logits for {len(words)} words, found {size}")
    for name in ("start", "end", "unknown"):
        if getattr(given, name) not in words:
            raise RequestRefused(f"{name}: the words have no {getattr(given, name)!r:.60}")
    ids = {name: words.index(getattr(given, name)) for name in ("start", "end", "unknown")}
    said = {"vocabulary": {"file": _WORDS, **ids}, "tokenizer": tokenizer}
    return BundleTokens(said, _WORDS, json.dumps(words, ensure_ascii=False))


def _pieces(given: ExportedCaptioner, size: int) -> BundleTokens:
    if given.words is not None or given.unknown is not None:
        raise RequestRefused("words and unknown: expected none beside a tokenizer of pieces")
    tokenizer = getattr(given.tokenizer, "backend_tokenizer", given.tokenizer)
    if not hasattr(tokenizer, "to_str"):
        raise RequestRefused(
            "tokenizer: expected a name, one of the library tokenizers, or a fast one of "
            f"transformers, found {type(tokenizer).__name__}"
        )
    ids = {name: tokenizer.token_to_id(getattr(given, name)) for name in ("start", "end")}
    for name, found in ids.items():
        if found is None:
            raise RequestRefused(f"{name}: the tokenizer has no {getattr(given, name)!r:.60}")
    longest = {} if given.longest is None else {"longest": given.longest}
    said = {"pieces": {"file": _PIECES, "size": size, **ids, **longest}}
    return BundleTokens(said, _PIECES, tokenizer.to_str())


def build_manifest(
    given: ExportedCaptioner,
    images: int,
    states: int,
    tokens: BundleTokens,
    encoder: FeatureEncoder | None,
) -> dict[str, Any]:
    """`images` and `states`: how many tensors of them there are."""
    seen = [f"image_{at}" for at in range(images)]
    kept = [f"state_{at}" for at in range(states)]
    score = {"file": SCORE, "words": "words", "logits": "logits"}
    return {
        "prescore": "1",
        "format": "onnx",
        **_inputs(given, encoder),
        "step": {"file": STEP, "words": "words", "logits": "logits"},
        "score": None if given.score is None else score,
        "images": [{"look": name, "step": name} for name in seen],
        "state": [
            {"first": f"{name}_first", "before": name, "after": f"{name}_after"} for name in kept
        ],
        **tokens.said,
    }


def _inputs(given: ExportedCaptioner, of_dataset: FeatureEncoder | None) -> dict[str, Any]:
    pictures = read_preprocessing(given)
    if pictures is not None:
        return {
            "preprocessing": pictures.model_dump(mode="json"),
            "look": {"file": LOOK, "pixels": "pixels"},
        }
    return {
        "feature_size": given.feature_size,
        "look": {"file": LOOK, "features": "features"},
        "encoder": _encoder(given.encoder, of_dataset),
    }


def _encoder(own: Mapping[str, str] | None, of_dataset: FeatureEncoder | None) -> Mapping[str, str]:
    if of_dataset is not None:
        return {"name": of_dataset.name, "digest": of_dataset.digest}
    if own is None:
        raise RequestRefused(
            "expected --dataset with the bundle whose features the model was trained on, or "
            "`encoder` with `name` and `digest` in what the function returns"
        )
    return own
