"""Datasets, checkpoints, and columns that were brought."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from service.contract.api.answers import Page, RunProblem
from service.contract.api.runs import DatasetPinned
from service.contract.api.strict import Strict
from service.contract.api.texts import Digest, Timestamp


class SplitOut(BaseModel):
    images: int
    references: int
    pictures: int = Field(description="Images of which the dataset has the picture itself.")


class EncoderOut(BaseModel):
    """The encoder of image features: a checkpoint's must equal its dataset's."""

    name: str
    digest: str


class FeaturesOut(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    encoder: EncoderOut
    size: int = Field(description="Of a vector: an image's, or that of one of its places.")
    inputs: Literal["features", "grid", "regions"] = Field(
        default="features",
        description="features: one vector of each image. grid: vectors of the same number of "
        "places in each. regions: vectors of up to `places` regions. A checkpoint takes one kind.",
    )
    places: int = Field(default=1, description="Places of an image; of regions, the most.")


class DatasetOut(BaseModel):
    """An immutable version of a dataset."""

    name: str
    version: str = Field(examples=["v1"])
    digest: Digest = Field(description="Of the tar in which it came.")
    content: Digest = Field(
        description="Of its content, by which it is the same version in another tar: the SHA-256 "
        "of what `sha256sum` prints of captions.jsonl, features.safetensors and all files under "
        "images/, in the order of their names."
    )
    captions: Digest = Field(
        description="Of its captions.jsonl; versions with the same captions share scores and "
        "leaderboards."
    )
    splits: dict[str, SplitOut]
    features: FeaturesOut | None = Field(
        description="null: the dataset scores captions alone, unless it has `pictures` of a split "
        "and the service has the checkpoint's encoder."
    )
    pictures_shown: bool = Field(
        description="Whether small forms of its pictures may be looked at, by everybody who "
        "reaches this service. PATCH changes it; the version stays the same."
    )
    created_at: Timestamp


class ReferencesOut(BaseModel):
    """An image, and what people have written about it."""

    dataset: DatasetPinned
    image: str
    id: str | None = Field(description="Its `id` in the bundle, if it has one.")
    split: str
    references: list[str]
    before: str | None = Field(
        description="The image before it in the split; null: it is the first."
    )
    after: str | None = Field(description="The next image of the split; null: it is the last.")
    has_picture: bool = Field(
        description="Whether its picture may be looked at: its dataset's pictures are shown, and "
        "this one is there. Where only some images have one, it is true until the service has "
        "looked which."
    )


class DatasetChange(Strict):
    """What may be changed of a version."""

    pictures_shown: bool = Field(description="Whether its pictures may be looked at.")


class CachedOut(BaseModel):
    """What is computed already, and is not computed again for this checkpoint."""

    dataset: str = Field(examples=["flickr8k@v1/test"])
    columns: bool = Field(description="It was scored, in fp32.")
    features: bool = Field(
        description="Image features of its encoder were computed from the pictures of this split."
    )


class ConfigOut(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    cell: Literal["gru", "lstm", "torch_gru"] | None = Field(
        default=None, description="null where the architecture says it, or has none."
    )
    size: int
    embedding_size: int | None = Field(default=None, description="null: the same as `size`.")
    image_size: int | None = Field(default=None, description="null: the same as `size`.")
    attention_size: int | None = Field(
        default=None, description="null: the same as `size`, or no such attention."
    )
    layers: int | None = Field(default=None, description="Of a Transformer.")
    heads: int | None = Field(default=None, description="The same.")
    inner_size: int | None = Field(default=None, description="The same; null: 4 times `size`.")
    feature_size: int


class PluginOut(BaseModel):
    """A captioner of an installed package, by which a checkpoint is evaluated."""

    name: str = Field(description="Of the entry point.")
    package: str | None = Field(description="null until it is verified.")
    version: str | None = Field(
        description="null until it is verified. Scores of another version are never mixed with "
        "these."
    )


class CheckpointOut(BaseModel):
    """A checkpoint, as its header describes it, or the package in which it came."""

    digest: Digest
    bytes: int
    format: Literal["canonical", "pytorch", "huggingface", "onnx", "plugin"] = Field(
        description="canonical: Prescore's own form. pytorch: a state dict with its map and its "
        "words, of which a work makes a checkpoint in that form. huggingface: what transformers "
        "has saved, and onnx: a bundle of graphs; both are evaluated as they are once a work has "
        "verified them. plugin: what a plug-in on the workers opens, which is evaluated as it is "
        "once a work of a worker that has the plug-in has verified it."
    )
    state: Literal["ready", "converting", "invalid"] = Field(
        description="Only an invalid one cannot be evaluated. The works of an evaluation wait for "
        "one that is being converted."
    )
    problem: RunProblem | None = Field(
        description="Why it is invalid. Another PUT tries again, unless `code` is "
        "invalid_checkpoint."
    )
    architecture: str = Field(examples=["merge"])
    plugin: PluginOut | None = Field(description="null: Prescore itself opens it.")
    inputs: Literal["features", "grid", "regions", "pixels"] = Field(
        description="What it takes of an image: one vector of features, those of a grid's places, "
        "those of regions, or the picture itself."
    )
    units: Literal["words", "pieces"] = Field(description="What its tokens are.")
    config: ConfigOut | None = Field(
        description="null until it is converted, and of other formats."
    )
    parameters: int | None = Field(description="null until it is converted.")
    vocabulary_size: int
    encoder: EncoderOut | None = Field(description="null: it has one of its own.")
    cached: list[CachedOut] = Field(description="What is computed already, by splits.")
    created_at: Timestamp


class ColumnsOut(BaseModel):
    """Columns that somebody's own code computed, as their file describes them."""

    digest: Digest
    bytes: int
    images: int
    references: int
    tokens: int = Field(description="Of all references, END included.")
    tokenizer: str = Field(
        description="How references became tokens, or words where the tokens are pieces of these; "
        "scores of another one are not compared."
    )
    words: int | None = Field(
        description="How many words the tokens make; null where the file tells of no pieces."
    )
    pieces: str | None = Field(
        description="The tokenizer by which the tokens are pieces of words; null: they are not."
    )
    model: str = Field(description="What was scored, in the words of who brought them.")
    vocabulary_size: int | None = Field(description="null where the file has no vocabulary.")
    top: int = Field(description="How many of the most probable tokens there are at each token.")
    entropy: bool
    created_at: Timestamp


class DatasetPage(Page[DatasetOut]):
    pass


class UploadProblem(BaseModel):
    """Why an upload was refused."""

    status: int = Field(description="The HTTP status with which it was refused.")
    code: str = Field(examples=["invalid_checkpoint"])
    detail: str


class UploadOut(BaseModel):
    """A file that arrives in several requests."""

    id: str
    kind: Literal["checkpoint", "columns", "dataset"]
    digest: Digest | None = Field(description="Of the whole file, as it was told at the beginning.")
    name: str | None = Field(description="Of the dataset of which it becomes a version.")
    length: int = Field(description="Bytes in all.")
    offset: int = Field(description="Bytes that are kept here for certain: send those after them.")
    staged: int = Field(description="Bytes in parts that the client has sent to the store itself.")
    complete: bool = Field(description="All bytes are there.")
    active: bool = Field(description="A request sends bytes of it just now.")
    location: str | None = Field(description="What it became; null until that is stored.")
    problem: UploadProblem | None = Field(description="Why it was refused; null unless it was.")
    created_at: Timestamp
    expires_at: Timestamp = Field(description="When it is deleted if no more bytes come.")


class PartOut(BaseModel):
    """A part of a file, and where it is sent."""

    number: int = Field(description="From 1 on.")
    offset: int = Field(description="Its first byte in the file.")
    bytes: int = Field(description="How many the store takes at this URL: exactly these.")
    url: str = Field(
        description="PUT the bytes here, without the service's key: whoever has the URL may.",
        examples=["https://s3.example.org/bucket/staged/up_…?partNumber=1&X-Amz-Signature=…"],
    )
    expires_at: Timestamp = Field(description="When the URL holds no more: ask again.")


class PartsOut(BaseModel):
    """What is still to be sent of a file that a client sends to the store itself."""

    length: int = Field(description="Bytes in all.")
    staged: int = Field(description="Bytes that the store has.")
    complete: bool = Field(description="All bytes are there: `GET` of the upload tells the rest.")
    parts: list[PartOut] = Field(
        description="The next ones that the store does not have, at most 16; none once the upload "
        "is complete."
    )


class UploadPage(Page[UploadOut]):
    """A team's unfinished uploads, the latest first; there are never more than one page holds."""
