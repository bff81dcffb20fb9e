"""What the map files of all architectures have in common."""

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from service.contract.formats.checkpoint_header import Encoder
from service.contract.formats.words import Tokenizer

# Beside every map's own: what layers of torch count, and what no captioner computes with.
IGNORED = ("*.num_batches_tracked",)

Name = str
Names = Name | list[Name]  # of layers one after the other


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Words(Table):
    """The special words, as the vocabulary writes them."""

    start: str
    end: str
    unknown: str


class Common(Table):
    normalize: Literal["l2", "none"]  # no default: a wrong one is wrong in silence
    tokenizer: Tokenizer = "karpathy"
    ignore: list[str] = Field(default=[], max_length=1000)  # patterns of tensors that count nothing
    encoder: Encoder | None = None  # None: the dataset's, which a command is given
    words: Words

    def ignores(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in (*IGNORED, *self.ignore))


def listed(names: Names) -> list[Name]:
    return [names] if isinstance(names, str) else names
