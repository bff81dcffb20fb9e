"""The captioner of an ONNX bundle."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from service.contract.errors import InvalidCheckpoint, UnusableCheckpoint
from service.contract.formats import onnx_bundles, packages
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.onnx_bundles import OnnxBundle, OnnxPreprocessing
from service.contract.formats.packages import ModelPackage
from service.contract.settings import Sandbox
from service.kernel.confinement import list_skipped_mechanisms
from workers.inference import features, pieces, tokenizer_child
from workers.inference.checkpoint_checks import check_memory_limit
from workers.inference.features import Inputs
from workers.inference.onnx.graphs import SECONDS, HeldRows, OnnxGraphs
from workers.inference.packing import Packed
from workers.inference.preprocessing import PicturePreparation
from workers.inference.vocabulary import CaptionerTokens, WordTokens

_MEMORY = 4_000_000_000  # bytes that the child may take where nobody says
_PROGRAM = 400_000_000  # onnxruntime, and what one call computes
_LOGITS_BYTES = 64_000_000  # of one call of `hidden`
_BATCH_TOKENS = 8_192
_PICTURED_TOKENS = 2_048  # each caption has its image: 600 KB of a usual encoder
_PICTURES = 16  # that are looked at in one call
_SEARCHED_PICTURES = 32  # whose states a search keeps: those of Transformers are large


class OnnxState(NamedTuple):
    images: HeldRows
    cells: HeldRows


class OnnxCaptioner:
    """Ranks are float32's: onnxruntime computes in the precision of the graph. So prefixes are read
    off columns, which are computed in the same blocks each time.
    """

    settles = False
    walks = False
    search = None

    def __init__(
        self,
        bundle: OnnxBundle,
        graphs: OnnxGraphs,
        tokens: CaptionerTokens,
        preparation: PicturePreparation | None = None,
    ) -> None:
        self.bundle = bundle
        self.tokens = tokens
        self.graphs = graphs
        self.preparation = preparation
        self.together = 128 if preparation is None else _SEARCHED_PICTURES

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def batch_tokens(self) -> int:
        most = _BATCH_TOKENS if self.preparation is None else _PICTURED_TOKENS
        return max(1, min(most, _LOGITS_BYTES // (4 * self.tokens.size)))

    def output(self, hidden: Tensor) -> Tensor:
        return hidden

    @property
    def encoder(self) -> FeatureEncoder | None:
        return self.bundle.manifest.encoder

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        if self.preparation is not None:
            return self.preparation.inputs(bundle, images)
        assert self.encoder is not None
        return features.read_features(bundle, images, self.encoder)

    def check(self, inputs: Inputs) -> None:
        if self.preparation is not None:
            self.preparation.check(inputs)
        else:
            features.check_features_size(inputs, self._shape[0])

    @property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one image: of its prepared picture, or of its features."""
        if self.preparation is not None:
            return self.preparation.shape
        size = self.bundle.manifest.feature_size
        assert size is not None
        return (size,)

    def look(self, images: Tensor) -> Any:  # rows by name: a tensor's indexing is all they share
        if self.preparation is None:
            return self.graphs.look([images])
        return self.graphs.look(torch.split(images, _PICTURES), self.preparation.normalised)

    def hidden(self, images: Any, captions: Packed) -> Tensor:
        images = images[captions.image_rows]
        if self.bundle.manifest.score is not None:
            return self._forced(images, captions)
        state = self.begin(images)
        found = []
        for words in torch.split(captions.words, captions.counts):
            if len(words) < len(state.cells):
                state = self.select(state, torch.arange(len(words)))
            logits, state = self.step(state, words)
            found.append(logits)
        return torch.cat(found)

    def begin(self, images: Any) -> OnnxState:
        return OnnxState(images, images)

    def step(self, state: OnnxState, words: Tensor) -> tuple[Tensor, OnnxState]:
        logits, cells = self.graphs.step(state.images, state.cells, words)
        return logits, OnnxState(state.images, cells)

    def select(self, state: OnnxState, rows: Tensor) -> OnnxState:
        return OnnxState(state.images[rows], state.cells[rows])

    def exact(self) -> Self:
        raise NotImplementedError("onnxruntime computes in the precision of the graph")

    def try_out(self) -> None:
        """Look at two images of zeros and read START and END, by steps and as a whole. Raises
        UnusableCheckpoint where that fails, or gives no numbers.
        """
        kind = torch.float32 if self.preparation is None else torch.uint8
        images = self.look(torch.zeros(2, *self._shape, dtype=kind))
        self.graphs.check(images)
        edges = torch.tensor([[self.tokens.start, self.tokens.end]] * 2)
        state = self.begin(images)
        for words in edges.T:
            logits, state = self.step(state, words)
            _check_finite("step", logits)
            self.graphs.check(state.cells)
        if self.bundle.manifest.score is not None:
            _check_finite("score", self.graphs.score(images, edges))

    def close(self) -> None:
        """End the process that runs the graphs; the next call starts another one."""
        self.graphs.close()

    def _forced(self, images: HeldRows, captions: Packed) -> Tensor:
        """All words at once. Shorter captions are filled with END, behind all that is looked at."""
        times = len(captions.counts)
        words = torch.full((len(images), times), self.tokens.end)
        for time, read in enumerate(torch.split(captions.words, captions.counts)):
            words[: len(read), time] = read
        logits = self.graphs.score(images, words)
        return torch.cat([logits[:count, time] for time, count in enumerate(captions.counts)])


def _check_finite(graph: str, logits: Tensor) -> None:
    """A word that is never said may have the logit -inf."""
    if not logits.logsumexp(-1).isfinite().all():
        raise UnusableCheckpoint(
            f"{graph}: expected numbers as logits after an image of zeros and START, found "
            "infinite ones, or NaN"
        )


def read_onnx_captioner(
    path: Path,
    memory: int | None = None,
    threads: int | None = None,
    seconds: float = SECONDS,
    sandbox: Sandbox = "required",
) -> OnnxCaptioner:
    """The captioner of a bundle: a folder, a tar or a zip that is not compressed.

    `memory`: bytes that it may take; `seconds`: of one call of a graph. Raises InvalidCheckpoint
    (files, manifest, tokenizer, structure of the graphs), OutOfMemory, and UnusableCheckpoint where
    onnxruntime does not run the graphs.
    """
    if not path.exists():
        raise InvalidCheckpoint(f"expected an ONNX bundle, found nothing at {path}")
    with packages.open_package(path) as package:
        bundle = onnx_bundles.validate_onnx_bundle(package)
        tokens = _read_tokens(package, bundle, sandbox)
    limit = _MEMORY if memory is None else memory
    needs = 2 * sum(place.size for place in bundle.places.values()) + _PROGRAM
    check_memory_limit(f"an ONNX bundle of {bundle.parameters:,} parameters", needs, limit)
    threads = torch.get_num_threads() if threads is None else threads
    without = list_skipped_mechanisms(sandbox)
    graphs = OnnxGraphs(bundle, memory=limit, threads=threads, seconds=seconds, without=without)
    found = OnnxCaptioner(
        bundle, graphs, tokens, _preparation(bundle.manifest.preprocessing, sandbox)
    )
    with graphs.on_trial():
        found.try_out()
    return found


def _read_tokens(package: ModelPackage, bundle: OnnxBundle, sandbox: Sandbox) -> CaptionerTokens:
    if bundle.manifest.pieces is not None:
        open_tokenizer = partial(tokenizer_child.open_tokenizer, sandbox=sandbox)
        return pieces.read_bundle_pieces(package, bundle.manifest.pieces, open_tokenizer)
    words, tokenizer = bundle.manifest.vocabulary, bundle.manifest.tokenizer
    assert words is not None
    assert tokenizer is not None
    return WordTokens(bundle.words, tokenizer, words.start, words.end, words.unknown)


def _preparation(found: OnnxPreprocessing | None, sandbox: Sandbox) -> PicturePreparation | None:
    if found is None:
        return None
    return PicturePreparation(found, sandbox, is_bgr=found.channels == "bgr")
