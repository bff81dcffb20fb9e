"""Captions as pieces of words, by the tokenizer of a package (tokenizer.json)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from prescore import plain_text
from service.contract.errors import (
    CheckpointMismatch,
    ConverterUnavailable,
    InvalidPackage,
    SandboxUnavailable,
)
from service.contract.formats import onnx_bundles, plugins
from service.contract.formats.packages import MOST_TOKENIZER_BYTES, ModelPackage
from service.contract.formats.plugins import PluginHeader
from workers.inference import tokenizer_forms
from workers.inference.vocabulary import EncodedCaptions

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class PieceEncoding(Protocol):
    """Pieces of a text: their ids, and where in the text they begin and end."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def offsets(self) -> list[tuple[int, int]]: ...


class PieceTokenizer(Protocol):
    """Tokenizer that runs elsewhere, with the methods of `tokenizers.Tokenizer` that are called."""

    def encode_batch(
        self, texts: Sequence[str], /, *, add_special_tokens: bool
    ) -> Sequence[PieceEncoding]: ...

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], /, *, skip_special_tokens: bool
    ) -> Sequence[str]: ...


# Of the text of a file, the file's name, and how many pieces the model knows.
OpenTokenizer = Callable[[str, str, int], "Tokenizer | PieceTokenizer"]


@dataclass(frozen=True)
class PieceTokens:
    """`most`: tokens that the model reads of one caption, START among them."""

    tokenizer: "Tokenizer | PieceTokenizer"
    size: int
    start: int
    end: int
    most: int
    never: tuple[int, ...] = ()

    def encode(self, references: Iterable[Sequence[str]]) -> EncodedCaptions:
        """A reference's words are what blanks separate; one of which no piece is, is left out."""
        captions = [[" ".join(text.split()) for text in each] for each in references]
        texts = [text for each in captions for text in each]
        found = [
            self._piece(text, encoding)
            for text, encoding in zip(texts, self.encodings(texts), strict=True)
        ]
        lengths = [len(ids) for ids, _ in found]
        counts = [count for _, each in found for count in each]
        return EncodedCaptions(
            np.array([token for ids, _ in found for token in ids], np.int64),
            np.cumsum([0, *lengths], dtype=np.int64),
            np.cumsum([0, *map(len, captions)], dtype=np.int64),
            self.start,
            np.cumsum([0, *counts], dtype=np.int64),
        )

    def text(self, ids: Sequence[int]) -> str:
        with _told("the tokenizer makes no text of pieces"):
            (found,) = self.tokenizer.decode_batch([list(ids)], skip_special_tokens=True)
        return found.strip()

    def encodings(self, texts: Sequence[str]) -> Sequence[PieceEncoding]:
        with _told("the tokenizer makes no pieces of the references"):
            return self.tokenizer.encode_batch(texts, add_special_tokens=False)

    def _piece(self, text: str, encoding: PieceEncoding) -> tuple[list[int], list[int]]:
        """Ids with END, and how many each word has, END too."""
        from prescore.errors import InvalidArgument
        from prescore.recording import words

        ids: list[int] = encoding.ids
        if len(ids) >= self.most:
            raise CheckpointMismatch(
                f"the reference {text!r:.60} has {len(ids)} pieces, the model reads at most "
                f"{self.most - 1}: leave it out of the dataset"
            )
        try:
            counts = words.count_pieces(text, encoding.offsets, len(ids))
        except InvalidArgument as error:
            kept = " ".join(word for word in text.split() if self.encodings([word])[0].ids)
            if kept == text:
                raise CheckpointMismatch(
                    f"the tokenizer makes no pieces of words of a reference: {error}"
                ) from None
            return self._piece(kept, self.encodings([kept])[0])
        return [*ids, self.end], [*counts, 1]


def read_bundle_pieces(
    package: ModelPackage, said: onnx_bundles.PiecesFile, open_tokenizer: OpenTokenizer
) -> PieceTokens:
    """Read the pieces of an ONNX bundle. Raises InvalidPackage, as `parse_tokenizer` does."""
    found = read_tokenizer(package, said.file, said.size, open_tokenizer)
    return PieceTokens(found, said.size, said.start, said.end, said.longest)


def read_plugin_pieces(header: PluginHeader, open_tokenizer: OpenTokenizer) -> PieceTokens:
    """Read the pieces of a plug-in's checkpoint. Raises InvalidPackage, as `parse_tokenizer`."""
    said = header.tokens
    assert isinstance(said, plugins.PluginPieces)
    assert header.tokenizer_json is not None
    found = open_tokenizer(header.tokenizer_json, plugins.TOKENIZER, said.size)
    return PieceTokens(found, said.size, said.start, said.end, said.longest)


def read_tokenizer(
    package: ModelPackage, name: str, size: int, open_tokenizer: OpenTokenizer
) -> "Tokenizer | PieceTokenizer":
    """Read the tokenizer in a file of a package. Raises InvalidPackage, as `parse_tokenizer`."""
    return open_tokenizer(package.text(name, MOST_TOKENIZER_BYTES), name, size)


def parse_tokenizer(text: str, name: str, size: int) -> "Tokenizer":
    """Parse the text of a tokenizer, which errors call `name`, in this process: one's own, or in
    the sandbox (`tokenizer_child`). Raises InvalidPackage where it is none, or has pieces that a
    model of so many does not know.
    """
    from tokenizers import Tokenizer

    tokenizer_forms.check_growth(text, name)
    try:
        with _told(f"{name} describes no tokenizer"):
            found = Tokenizer.from_str(text)
    except CheckpointMismatch as error:
        raise InvalidPackage(error.detail, pointer=f"/{name}") from None
    found.no_padding()
    found.no_truncation()
    highest = max(found.get_vocab(with_added_tokens=True).values(), default=0)
    if highest >= size:
        raise InvalidPackage(
            f"{name} has a piece {highest}, the model knows {size}: they do not belong together",
            pointer=f"/{name}",
        )
    return found


@contextmanager
def _told(what: str) -> Iterator[None]:
    """The library raises whatever it likes for a tokenizer that is wrong."""
    try:
        yield
    except (ConverterUnavailable, SandboxUnavailable):  # says nothing of the tokenizer
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CheckpointMismatch(f"{what}: {plain_text.quoted(str(error))[:200]}") from None
