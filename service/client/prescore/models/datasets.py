"""Datasets: versions, their splits and features, and the references of their images."""

from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field

from prescore.models.base import Answer, Brief, Linked, OpenEnum, PageOf, TupleOf
from prescore.models.identifiers import ContentDigest, OwnDigest, Timestamp
from prescore.models.runs import DatasetPinned

SPLITS_SHOWN = 4  # in a short form


class Split(Answer, needs=("images",)):
    images: int
    references: int
    words: int | None = Field(
        default=None, description="Of all references, as blanks separate them; null: not counted."
    )
    pictures: int = Field(description="Images of which the dataset has the picture itself.")


class Encoder(Answer):
    """The encoder of image features: a checkpoint's must equal its dataset's."""

    name: str
    digest: str


class Features(Answer):
    encoder: Encoder
    size: int = Field(description="Of a vector: an image's, or that of one of its places.")
    inputs: Annotated[Literal["features", "grid", "regions"], OpenEnum()] = Field(
        default="features",
        description="features: one vector of each image. grid: vectors of the same number of "
        "places in each. regions: vectors of up to `places` regions. A checkpoint takes one kind.",
    )
    places: int = Field(default=1, description="Places of an image; of regions, the most.")


class Dataset(Linked, needs=("name", "version")):
    """An immutable version of a dataset."""

    name: str
    version: str = Field(examples=["v1"])
    digest: OwnDigest = Field(description="Of the tar in which it came.")
    content: ContentDigest = Field(
        description="Of its content, by which it is the same version in another tar: the SHA-256 "
        "of what `sha256sum` prints of captions.jsonl, features.safetensors and all files under "
        "images/, in the order of their names."
    )
    captions: ContentDigest = Field(
        description="Of its captions.jsonl; versions with the same captions share scores and "
        "leaderboards."
    )
    splits: dict[str, Split]
    features: Features | None = Field(
        description="null: the dataset scores captions alone, unless it has `pictures` of a split "
        "and the service has the checkpoint's encoder."
    )
    pictures_shown: bool = Field(
        description="True if thumbnails of its pictures may be seen, by everybody who "
        "reaches this service. PATCH changes it; the version stays the same."
    )
    created_at: Timestamp

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def place(self) -> str:
        return f"/v1/datasets/{quote(str(self), safe='@')}"

    def below(self) -> tuple[str, ...]:
        return "leaderboard", "history", "correlations"

    def facts(self) -> tuple[object, ...]:
        shown = [f"{name}={split.images}" for name, split in self.splits.items()]
        return str(self), *shown[:SPLITS_SHOWN]


class DatasetPage(PageOf[Dataset]):
    pass


class References(Brief, needs=("dataset", "image")):
    """An image, and what people have written about it."""

    dataset: DatasetPinned
    image: str
    id: str | None = Field(description="Its `id` in the bundle, if it has one.")
    split: str
    references: TupleOf[str]
    before: str | None = Field(
        description="The image before it in the split; null: it is the first."
    )
    after: str | None = Field(description="The next image of the split; null: it is the last.")
    has_picture: bool = Field(
        description="True if its picture may be seen: its dataset's pictures are shown, and "
        "this one is there. Where only some images have one, it is true until the service has "
        "looked which."
    )

    def facts(self) -> tuple[object, ...]:
        return self.image, *self.references[:1]
