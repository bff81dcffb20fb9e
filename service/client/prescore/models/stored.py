"""What the service keeps: checkpoints, columns and datasets."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from pydantic import Field

from prescore.models.base import Answer, Brief, Digest, Linked, Problem
from prescore.models.runs import Pinned

SPLITS_SHOWN = 4  # in a short form


class Encoder(Answer):
    name: str = ""
    digest: str = ""


class Cached(Answer):
    dataset: str
    columns: bool = False
    features: bool = False


class Plugin(Answer):
    """A captioner of a package that is installed on the workers."""

    name: str = ""
    package: str | None = None
    version: str | None = None


class Checkpoint(Linked):
    digest: Digest
    bytes: int | None = None
    format: str = "canonical"
    state: str = "ready"  # "converting", "invalid"
    problem: Problem | None = None  # why it is invalid
    architecture: str = ""
    plugin: Plugin | None = None
    inputs: str = "features"
    units: str = "words"
    config: dict[str, Any] | None = None
    parameters: int | None = None
    vocabulary_size: int | None = None
    encoder: Encoder | None = None
    cached: tuple[Cached, ...] = ()
    created_at: datetime | None = None

    def place(self) -> str:
        return f"/v1/checkpoints/{self.digest}"

    def facts(self) -> tuple[object, ...]:
        return self.digest, self.architecture


class Columns(Linked):
    """Columns that somebody's own code computed. `tokens`: of all references, END included; `top`:
    how many of the most probable tokens there are at each token. `words`: where tokens are pieces
    of words, how many these make; `pieces`: the tokenizer of pieces.
    """

    digest: Digest
    bytes: int | None = None
    model: str = ""
    tokenizer: str = ""
    images: int | None = None
    references: int | None = None
    tokens: int | None = None
    words: int | None = None
    pieces: str | None = None
    vocabulary_size: int | None = None
    top: int | None = None
    entropy: bool | None = None
    created_at: datetime | None = None

    def place(self) -> str:
        return f"/v1/columns/{self.digest}"

    def facts(self) -> tuple[object, ...]:
        return self.digest, self.model, self.tokenizer


class Split(Answer):
    images: int
    references: int = 0
    pictures: int = 0


class Features(Answer):
    encoder: Encoder | None = None
    size: int | None = None  # of a vector: an image's, or that of one of its places
    inputs: str = "features"  # or "grid", "regions"
    places: int = 1


class Dataset(Linked):
    """A version of a dataset. Digests: of its tar, of its content, and of its captions.jsonl; the
    latter two are None where the service does not know them.
    """

    name: str
    version: str
    digest: Digest = ""
    content: Digest | None = None
    captions: Digest | None = None
    splits: dict[str, Split] = Field(default_factory=dict)
    features: Features | None = None
    pictures_shown: bool = False
    created_at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def place(self) -> str:
        return f"/v1/datasets/{quote(str(self), safe='@')}"

    def below(self) -> tuple[str, ...]:
        return "leaderboard", "history", "correlations"

    def facts(self) -> tuple[object, ...]:
        shown = [f"{name}={split.images}" for name, split in self.splits.items()]
        return str(self), *shown[:SPLITS_SHOWN]


class References(Brief):
    """What people have written about an image. `has_picture`: it may be looked at."""

    dataset: Pinned
    image: str
    id: str | None = None
    references: tuple[str, ...] = ()
    has_picture: bool = False

    def facts(self) -> tuple[object, ...]:
        return self.image, *self.references[:1]


class Upload(Answer):
    """A file that arrives in several requests."""

    id: str
    kind: str
    name: str | None = None
    length: int | None = None
    offset: int = 0
    complete: bool = False
    active: bool = False  # a request sends bytes of it just now
    location: str | None = None  # what it became
    problem: Problem | None = None  # why it was refused


class Part(Answer):
    """A part of a file, and where in the object store it is put."""

    number: int
    offset: int = Field(ge=0)
    bytes: int = Field(ge=1)
    url: str = Field(repr=False)  # whoever has it may write there


class Parts(Answer):
    """What is still to be sent of a file that the client sends to the object store itself."""

    staged: int = 0  # bytes that the store has
    complete: bool
    parts: list[Part] = Field(default_factory=list, max_length=1000)


class UploadPage(Answer):
    items: list[Upload] = Field(max_length=1000)


class Change(Brief):
    """One change in the list of who changed what."""

    at: datetime | None = None
    team: str = ""
    key: str | None = None
    address: str = ""
    action: str
    object: str
    detail: dict[str, Any] = Field(default_factory=dict)

    def facts(self) -> tuple[Any, ...]:
        return self.action, self.object, self.key or self.address
