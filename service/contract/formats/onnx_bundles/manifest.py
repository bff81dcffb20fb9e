"""`prescore.json` of an ONNX bundle: which graph does what, and by which names."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from prescore.models.choices import Units
from prescore.plain_text import NAME
from service.contract.formats import strict_json
from service.contract.formats.architectures import MAX_FEATURE_SIZE
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.preprocessing import PicturePreprocessing
from service.contract.formats.strict_json import JsonPart
from service.contract.formats.vocabularies import MODEL_TOKENIZERS, ModelTokenizer

MANIFEST_FILE = "prescore.json"
MAX_BYTES = 100_000
MAX_STATES = 200  # tensors: two for each of 100 layers
MOST_PIECES = 300_000  # the largest tokenizers have 260,000
MOST_READ = 65_536

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
Id = Annotated[int, Field(ge=0)]


class LookGraph(JsonPart):
    """Computed once an image. Its only input is `features`, (N, feature size), or `pixels`,
    (N, 3, height, width).
    """

    file: FileName
    features: Name | None = None
    pixels: Name | None = None


class StepGraph(JsonPart):
    """Reads a word in each row. `words`: (n); `logits`: (n, words)."""

    file: FileName
    words: Name
    logits: Name


class ScoreGraph(StepGraph):
    """Reads whole captions. `words`: (n, L); `logits`: (n, L, words)."""


class ImageTensor(JsonPart):
    """A tensor of each image: an output of `look`, and the input of `step` that it becomes."""

    look: Name
    step: Name


class StateTensor(JsonPart):
    """A tensor of each caption: an output of `look` before the first word, then an input of `step`
    and its output.
    """

    first: Name
    before: Name
    after: Name


class VocabularyFile(JsonPart):
    """`file`: a JSON list of words by id. START and END may be one word."""

    file: FileName
    start: Id
    end: Id
    unknown: Id


class PiecesFile(JsonPart):
    """`file`: a tokenizer as the library tokenizers saves it. `size`: of a step's logits.
    `longest`: the most tokens that are read of a caption, START among them.
    """

    file: FileName
    size: int = Field(ge=2, le=MOST_PIECES)
    start: Id
    end: Id
    longest: int = Field(default=MOST_READ, ge=2, le=MOST_READ)


class OnnxPreprocessing(PicturePreprocessing):
    """`channels`: in which order the network takes them."""

    channels: Literal["rgb", "bgr"] = "rgb"


class OnnxManifest(JsonPart):
    """Manifest of an ONNX bundle. Image features need `feature_size`, `encoder` and
    `look.features`; pictures `preprocessing` and `look.pixels`. Words need `vocabulary` and
    `tokenizer`; pieces of words `pieces`.
    """

    prescore: Literal["1"]
    format: Literal["onnx"]
    feature_size: int | None = Field(default=None, ge=1, le=MAX_FEATURE_SIZE)
    preprocessing: OnnxPreprocessing | None = None
    look: LookGraph
    step: StepGraph
    score: ScoreGraph | None = None
    images: list[ImageTensor] = Field(default=[], max_length=MAX_STATES)
    state: list[StateTensor] = Field(default=[], max_length=MAX_STATES)
    vocabulary: VocabularyFile | None = None
    pieces: PiecesFile | None = None
    tokenizer: ModelTokenizer | None = None
    encoder: FeatureEncoder | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> "OnnxManifest":
        features = {
            "feature_size": self.feature_size,
            "encoder": self.encoder,
            "look/features": self.look.features,
        }
        pictures = {"preprocessing": self.preprocessing, "look/pixels": self.look.pixels}
        _check_one(features, pictures)
        words = {"vocabulary": self.vocabulary, "tokenizer": self.tokenizer}
        _check_one(words, {"pieces": self.pieces})
        return self

    @model_validator(mode="after")
    def _each_once(self) -> "OnnxManifest":
        for what, names in (
            ("the output of look", [each.look for each in self.images]),
            ("the output of look", [each.first for each in self.state]),
            ("the input of step", [self.step.words, *self.fed]),
            ("the output of step", [self.step.logits, *(each.after for each in self.state)]),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(
                    f"{what} {twice!r} is named twice; each tensor has a name of its own"
                )
        if self.tokenizer is not None and self.tokenizer not in MODEL_TOKENIZERS:
            known = " or ".join(map(repr, MODEL_TOKENIZERS))
            raise ValueError(f"tokenizer: expected {known}, found {self.tokenizer!r:.60}")
        if self.encoder is not None and self.encoder.oddity() is not None:
            raise ValueError(str(self.encoder.oddity()))
        return self

    @property
    def inputs(self) -> Literal["features", "pixels"]:
        return "features" if self.preprocessing is None else "pixels"

    @property
    def units(self) -> Units:
        return "words" if self.pieces is None else "pieces"

    @property
    def seen(self) -> str:
        """The name of `look`'s input."""
        name = self.look.features or self.look.pixels
        assert name is not None
        return name

    @property
    def tokens(self) -> VocabularyFile | PiecesFile:
        found = self.vocabulary or self.pieces
        assert found is not None
        return found

    @property
    def fed(self) -> list[str]:
        """Inputs of `step` beside words, by their names: of images, then the state."""
        return [*(each.step for each in self.images), *(each.before for each in self.state)]

    @property
    def looked(self) -> list[str]:
        """The outputs of `look` in the same order."""
        return [*(each.look for each in self.images), *(each.first for each in self.state)]


def _check_one(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise unless all of one are given and none of the other."""
    given = [name for name, value in {**one, **other}.items() if value is not None]
    if given not in ([*one], [*other]):
        raise ValueError(
            f"expected {_listed(one)}, or {_listed(other)}, found {_listed(given) or 'none'}"
        )


def _listed(names: Iterable[str]) -> str:
    *most, last = ("", *names)
    return f"{', '.join(most[1:])} and {last}" if most[1:] else last


def parse_manifest(text: str) -> OnnxManifest:
    """Parse a manifest. Raises ConfigInvalid with the place of the first fault."""
    return strict_json.parse_model(OnnxManifest, text, MANIFEST_FILE, f"/{MANIFEST_FILE}")
