"""Checkpoints, and columns that somebody's own code computed."""

from typing import Annotated, Literal

from pydantic import Field

from prescore.models.base import Answer, Linked, OpenEnum, RunProblem, TupleOf
from prescore.models.choices import Units
from prescore.models.datasets import Encoder
from prescore.models.identifiers import OwnDigest, Timestamp


class Cached(Answer, needs=("dataset",)):
    """Cached results of a checkpoint on one split, which are not computed again."""

    dataset: str = Field(examples=["flickr8k@v1/test"])
    columns: bool = Field(description="It was scored, in fp32.")
    features: bool = Field(
        description="Image features of its encoder were computed from the pictures of this split."
    )


class CheckpointConfig(Answer):
    cell: Annotated[Literal["gru", "lstm", "torch_gru"], OpenEnum()] | None = Field(
        description="null where the architecture says it, or has none."
    )
    size: int
    embedding_size: int | None = Field(description="null: the same as `size`.")
    image_size: int | None = Field(description="null: the same as `size`.")
    attention_size: int | None = Field(
        description="null: the same as `size`, or no such attention."
    )
    layers: int | None = Field(description="Of a Transformer.")
    heads: int | None = Field(description="The same.")
    inner_size: int | None = Field(description="The same; null: 4 times `size`.")
    feature_size: int


class Plugin(Answer):
    """A captioner of an installed package, by which a checkpoint is evaluated."""

    name: str = Field(description="Of the entry point.")
    package: str | None = Field(description="null until it is verified.")
    version: str | None = Field(
        description="null until it is verified. Scores of another version are never mixed with "
        "these."
    )


class BaseModelOfAdapter(Answer):
    """The base model with which an adapter is evaluated, unless a request names another one."""

    name: str = Field(description="The registered name; where none is, the adapter's own word.")
    digest: OwnDigest | None = Field(description="null: no such base model is registered.")


class Checkpoint(Linked, needs=("digest",)):
    """A checkpoint, as its header describes it, or the package in which it came."""

    digest: OwnDigest
    bytes: int
    format: Annotated[
        Literal["canonical", "pytorch", "huggingface", "adapter", "onnx", "plugin"], OpenEnum()
    ] = Field(
        description="canonical: Prescore's own form. pytorch: a state dict with its map and its "
        "words, of which a task makes a checkpoint in that form. huggingface: what transformers "
        "has saved, adapter: what PEFT has saved for a base model that the operator has "
        "registered, and onnx: a bundle of graphs; they are evaluated as they are once a task has "
        "verified them. plugin: what a plug-in on the workers opens, which is evaluated as it is "
        "once a task of a worker that has the plug-in has verified it."
    )
    state: Annotated[Literal["ready", "converting", "invalid"], OpenEnum()] = Field(
        description="Only an invalid one cannot be evaluated. The tasks of an evaluation wait for "
        "one that is being converted."
    )
    problem: RunProblem | None = Field(
        description="Why it is invalid. Another PUT tries again, unless `code` is "
        "invalid_checkpoint."
    )
    architecture: str = Field(examples=["merge"])
    plugin: Plugin | None = Field(description="null: Prescore itself opens it.")
    base: BaseModelOfAdapter | None = Field(description="null: it is no adapter.")
    inputs: Annotated[Literal["features", "grid", "regions", "pixels"], OpenEnum()] = Field(
        description="Input for an image: one vector of features, those of a grid's places, "
        "those of regions, or the picture itself."
    )
    units: Annotated[Units, OpenEnum()] = Field(description="Kind of its tokens.")
    config: CheckpointConfig | None = Field(
        description="null until it is converted, and of other formats."
    )
    parameters: int | None = Field(description="null until it is converted.")
    vocabulary_size: int | None = Field(
        description="null of an adapter whose base model is not registered."
    )
    encoder: Encoder | None = Field(description="null: it has one of its own.")
    cached: TupleOf[Cached] = Field(description="Results that are computed already, by split.")
    created_at: Timestamp

    def place(self) -> str:
        return f"/v1/checkpoints/{self.digest}"

    def facts(self) -> tuple[object, ...]:
        return self.digest, self.architecture


class Columns(Linked, needs=("digest",)):
    """Columns that somebody's own code computed, as their file describes them."""

    digest: OwnDigest
    bytes: int
    images: int
    references: int
    tokens: int = Field(description="Of all references, END included.")
    tokenizer: str = Field(
        description="Tokenizer of references: it makes tokens, or words where the tokens are "
        "pieces of these; scores of another one are not compared."
    )
    words: int | None = Field(
        description="Number of words that the tokens make; null where the file tells of no pieces."
    )
    pieces: str | None = Field(
        description="The tokenizer by which the tokens are pieces of words; null: they are not."
    )
    model: str = Field(description="Name of the scored model, as its owner wrote it.")
    vocabulary_size: int | None = Field(description="null where the file has no vocabulary.")
    top: int = Field(description="Number of the most probable tokens at each token.")
    entropy: bool
    created_at: Timestamp

    def place(self) -> str:
        return f"/v1/columns/{self.digest}"

    def facts(self) -> tuple[object, ...]:
        return self.digest, self.model, self.tokenizer
