"""Compares a checkpoint's log-probabilities with those of its owner's own code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError
from torch import Tensor

from service.contract.errors import RequestRefused
from service.contract.formats import strict_json
from service.contract.formats.architectures import AnyConfig, RecurrentConfig
from service.contract.formats.checkpoint_header import EDGE, UNK, CheckpointDescription
from service.contract.wording import describe_field_error
from workers.inference import features, scoring
from workers.inference.captioners import ARCHITECTURES, CanonicalCaptioner
from workers.inference.captioners.cells import Tensors
from workers.inference.vocabulary import EncodedCaptions

MAX_EXAMPLES = 1000
_LSTM = ("input", "forget", "candidate", "output")
Floats = NDArray[np.float64]


class VerificationExample(BaseModel):
    """A caption's words, its image, and what other code computes for each word and the end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    words: list[str] = Field(max_length=1000)
    logp: list[FiniteFloat] = Field(min_length=1, max_length=1001)
    features: list[FiniteFloat] | list[list[FiniteFloat]] | None = None  # or of its places
    image: str | None = None


@dataclass(frozen=True)
class VerificationResult:
    """`ours` and `theirs`: by example, the log-probability of each word. `remedy`: with what change
    of the file the two would agree, if there is one.
    """

    words: Sequence[Sequence[str]]
    ours: Sequence[Floats]
    theirs: Sequence[Floats]
    remedy: str | None

    @property
    def furthest(self) -> float:
        return _furthest(self.ours, self.theirs)


def read_examples(path: Path, bundle: Path | None) -> list[VerificationExample]:
    """Read the examples in a file; RequestRefused names the wrong one and its place."""
    try:
        value = strict_json.parse_json(path.read_text("utf-8"))
        found = TypeAdapter(list[VerificationExample]).validate_python(value)
    except (OSError, UnicodeDecodeError, strict_json.NotJson) as error:
        raise RequestRefused(f"{path}: expected a JSON list of examples ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestRefused(
            f"{path}{strict_json.join_pointer(first['loc'])}: {describe_field_error(first)}"
        ) from None
    if not 1 <= len(found) <= MAX_EXAMPLES:
        raise RequestRefused(f"{path}: expected 1 to {MAX_EXAMPLES} examples, found {len(found)}")
    for index, example in enumerate(found):
        if len(example.logp) != len(example.words) + 1:
            raise RequestRefused(
                f"{path}/{index}/logp: expected {len(example.words) + 1} numbers, one for each "
                f"word and one for the end, found {len(example.logp)}"
            )
        wanted = "image" if bundle else "features"
        if (example.features is None) == (example.image is None) or (
            example.features is None and bundle is None
        ):
            raise RequestRefused(f"{path}/{index}: expected {wanted!r}, and only one of the two")
    return found


def verify_checkpoint(
    model: CanonicalCaptioner,
    given: Sequence[VerificationExample],
    bundle: Path | None,
    tolerance: float,
) -> VerificationResult:
    rows = _features(model.description, given, bundle)
    encoded = _encoded(model.description, given)
    theirs = [np.array(example.logp) for example in given]
    words = [[*example.words, "END"] for example in given]
    ours = _logp(model, rows, encoded)
    if _furthest(ours, theirs) <= tolerance:
        return VerificationResult(words, ours, theirs, None)
    agreeing = (
        name
        for name, other in _others(model)
        if _furthest(_logp(other, rows, encoded), theirs) <= tolerance
    )
    return VerificationResult(words, ours, theirs, next(agreeing, None))


def _furthest(ours: Sequence[Floats], theirs: Sequence[Floats]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))


def _logp(
    model: CanonicalCaptioner, rows: NDArray[np.float32], encoded: EncodedCaptions
) -> list[Floats]:
    found = scoring.compute_columns(model, rows, encoded).logp.astype(np.float64)
    return np.split(found, encoded.caption_offsets[1:-1])


def _features(
    description: CheckpointDescription, given: Sequence[VerificationExample], bundle: Path | None
) -> NDArray[np.float32]:
    images = [example.image for example in given if example.image is not None]
    read = _read(description, images, bundle) if bundle and images else iter(())
    rows = [
        next(read) if example.features is None else _given(description.config, index, example)
        for index, example in enumerate(given)
    ]
    most = max(1, *(len(row) for row in rows))
    return np.stack([_filled(row, most) for row in rows])


def _read(
    description: CheckpointDescription, images: Sequence[str], bundle: Path
) -> Iterator[NDArray[np.float32]]:
    kind = description.config.inputs
    return iter(features.read_features(bundle, images, description.encoder, kind)[:])


def _given(config: AnyConfig, index: int, example: VerificationExample) -> NDArray[np.float32]:
    size = config.feature_size
    if config.inputs == "features":
        is_flat = not any(isinstance(value, list) for value in example.features or ())
        row = np.array(example.features, np.float32) if is_flat else np.empty((0, 0))
        if row.shape != (size,):
            raise RequestRefused(
                f"example {index}: expected {size} features, as the checkpoint says, "
                f"found {len(example.features or ())}"
            )
        return row
    places = example.features or []
    if any(not isinstance(place, list) or len(place) != size for place in places):
        raise RequestRefused(
            f"example {index}: expected a list of places with {size} features each, as the "
            "checkpoint says"
        )
    return np.array(places, np.float32).reshape(len(places), size)


def _filled(row: NDArray[np.float32], places: int) -> NDArray[np.float32]:
    """Fill a row with NaN for places that are not there."""
    if row.ndim == 1:
        return row
    return np.pad(row, ((0, places - len(row)), (0, 0)), constant_values=np.nan)


def _encoded(
    description: CheckpointDescription, given: Sequence[VerificationExample]
) -> EncodedCaptions:
    ids = {word: index for index, word in enumerate(description.vocabulary) if index > UNK}
    tokens = [[*(ids.get(word, UNK) for word in each.words), EDGE] for each in given]
    offsets = np.cumsum([0, *map(len, tokens)])
    return EncodedCaptions(np.concatenate(tokens), offsets, np.arange(len(given) + 1))


def _others(model: CanonicalCaptioner) -> Iterator[tuple[str, CanonicalCaptioner]]:
    """Models with a mistake of conversions: the normalisation, an order, or both."""
    here = model.description.config.normalize
    for normalize in (here, "none" if here == "l2" else "l2"):
        config = model.description.config.model_copy(update={"normalize": normalize})
        description = replace(model.description, config=config)
        first = [] if normalize == here else [f'"normalize": "{normalize}" in its config']
        for name, changed in _reordered(model.tensors, config):
            tensors = {**model.tensors, **changed}
            remedy = " and ".join([*first, *([name] if name else [])])
            if remedy:
                yield remedy, ARCHITECTURES[description.architecture](description, tensors)


def _reordered(tensors: Tensors, config: AnyConfig) -> Iterator[tuple[str, Tensors]]:
    yield "", {}
    if not isinstance(config, RecurrentConfig):
        return
    yield (
        "the rows of the input before those of the state",
        {
            name: tensor.roll(-config.size, 0)
            for name, tensor in tensors.items()
            if name in ("gates.weight", "candidate.weight")
        },
    )
    if config.cell != "lstm":
        reset, update = _gates(tensors, 2)
        yield "the gates in the order reset, update", _joined([update, reset])
        negative = [-part for part in update]
        yield "an update gate that keeps the old state", _joined([reset, negative])
    else:
        gates = _gates(tensors, 4)
        for order in [*permutations(range(4))][1:]:
            found = ", ".join(_LSTM[order.index(place)] for place in range(4))
            name = f"the gates in the order {', '.join(_LSTM)}; they seem to be {found}"
            yield name, _joined([gates[place] for place in order])


def _gates(tensors: Tensors, count: int) -> list[list[Tensor]]:
    weights = tensors["gates.weight"].chunk(count, dim=1)
    return [list(pair) for pair in zip(weights, tensors["gates.bias"].chunk(count), strict=True)]


def _joined(parts: Sequence[Sequence[Tensor]]) -> Tensors:
    weight = torch.cat([part[0] for part in parts], dim=1)
    return {"gates.weight": weight, "gates.bias": torch.cat([part[1] for part in parts])}
