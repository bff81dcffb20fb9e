"""A captioner as ONNX graphs with a manifest: read without onnx, run by nothing here."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.contract.errors import GraphInvalid, InvalidPackage, VocabularyInvalid
from service.contract.formats import vocabularies
from service.contract.formats.onnx_bundles import graphs, manifest
from service.contract.formats.onnx_bundles.graphs import OnnxGraph, OnnxTensor
from service.contract.formats.onnx_bundles.manifest import (
    MANIFEST_FILE,
    OnnxManifest,
    OnnxPreprocessing,
    PiecesFile,
    VocabularyFile,
)
from service.contract.formats.onnx_bundles.protobuf import FLOAT, INT64
from service.contract.formats.packages import MOST_TOKENIZER_BYTES, FilePlace, ModelPackage

__all__ = [
    "MANIFEST_FILE",
    "OnnxBundle",
    "OnnxManifest",
    "OnnxPreprocessing",
    "PiecesFile",
    "read_manifest_and_words",
    "validate_onnx_bundle",
]


MOST_VOCABULARY_BYTES = 20_000_000
_CHANNELS = 3


@dataclass(frozen=True)
class OnnxBundle:
    """`words` by the network's ids, none where its tokens are pieces; `places`: where the bytes of
    each graph lie.
    """

    manifest: OnnxManifest
    words: tuple[str, ...]
    graphs: Mapping[str, OnnxGraph]
    places: Mapping[str, FilePlace]

    @property
    def size(self) -> int:
        """Number of tokens that the network knows."""
        pieces = self.manifest.pieces
        return len(self.words) if pieces is None else pieces.size

    @property
    def parameters(self) -> int:
        return sum(graph.parameters for graph in self.graphs.values())


def read_manifest_and_words(package: ModelPackage) -> tuple[OnnxManifest, tuple[str, ...]]:
    """The manifest, and its words by the network's ids, if any. Raises InvalidCheckpoint."""
    found = manifest.parse_manifest(package.text(manifest.MANIFEST_FILE, manifest.MAX_BYTES))
    return found, _words(package, found)


def validate_onnx_bundle(package: ModelPackage) -> OnnxBundle:
    """Validate an ONNX bundle. Raises InvalidCheckpoint with the fault and its file."""
    found, words = read_manifest_and_words(package)
    parts = {"look": found.look, "step": found.step, "score": found.score}
    files = {name: part.file for name, part in parts.items() if part is not None}
    of_tokens = found.tokens.file
    if len({*files.values(), of_tokens}) <= len(files):
        raise InvalidPackage(f"{manifest.MANIFEST_FILE}: names one file for two parts")
    places = {name: _place(package, file) for name, file in files.items()}
    _check_files(package, {manifest.MANIFEST_FILE, of_tokens, *files.values()})
    judged = {}
    for name, file in files.items():
        with package.file(file).open() as stream:
            judged[name] = graphs.validate_onnx_graph(stream, places[name].size, file)
    bundle = OnnxBundle(found, words, judged, places)
    _check_names(bundle)
    return bundle


def _words(package: ModelPackage, found: OnnxManifest) -> tuple[str, ...]:
    if found.pieces is not None:
        _check_pieces(package, found.pieces)
        return ()
    special = found.vocabulary
    assert special is not None
    words = vocabularies.parse_vocabulary(
        package.text(special.file, MOST_VOCABULARY_BYTES), special.file
    )
    _check_ids("vocabulary", special, ("start", "end", "unknown"), len(words))
    if special.unknown in (special.start, special.end):
        raise VocabularyInvalid(
            f"{manifest.MANIFEST_FILE}, vocabulary/unknown: is also the start or the end of "
            "captions",
            pointer=f"/{manifest.MANIFEST_FILE}/vocabulary/unknown",
        )
    return words


def _check_pieces(package: ModelPackage, found: PiecesFile) -> None:
    """Check the tokenizer's size; a task opens it, which may take much."""
    size = package.file(found.file).size
    if size > MOST_TOKENIZER_BYTES:
        raise VocabularyInvalid(
            f"{found.file}: {size:,} bytes, at most {MOST_TOKENIZER_BYTES:,} are accepted",
            pointer=f"/{found.file}",
        )
    _check_ids("pieces", found, ("start", "end"), found.size)


def _check_ids(
    part: str, found: VocabularyFile | PiecesFile, names: Sequence[str], size: int
) -> None:
    for name in names:
        if getattr(found, name) >= size:
            raise VocabularyInvalid(
                f"{manifest.MANIFEST_FILE}, {part}/{name}: expected the id of one of {size} "
                f"{'words' if part == 'vocabulary' else part}, found {getattr(found, name)}",
                pointer=f"/{manifest.MANIFEST_FILE}/{part}/{name}",
            )


def _check_files(package: ModelPackage, named: Collection[str]) -> None:
    """Other files may be notes; other values are none that a graph could have asked for."""
    for file in sorted(package.files):
        if file not in named and file.endswith((".onnx", ".data", ".onnx_data")):
            raise InvalidPackage(
                f"{file}: {manifest.MANIFEST_FILE} does not name it; a graph has all its values "
                "inside (external data is not accepted)",
                pointer=f"/{file}",
            )


def _place(package: ModelPackage, file: str) -> FilePlace:
    place = package.file(file).place
    if place is None:
        raise InvalidPackage(
            f"{file}: is compressed; pack the bundle as a tar, or by `zip -0`", pointer=f"/{file}"
        )
    return place


def _check_names(bundle: OnnxBundle) -> None:
    """Every graph has the inputs and outputs that the manifest names, no other input, and tensors
    of the right types and sizes as far as it says them.
    """
    found, judged, words = bundle.manifest, bundle.graphs, bundle.size
    number, pictures = None, found.preprocessing
    image = (found.feature_size,) if pictures is None else (_CHANNELS, *pictures.shape)
    look = {found.seen: OnnxTensor(FLOAT, (number, *image))}
    _check(found.look.file, "input", judged["look"].inputs, look)
    anything: dict[str, OnnxTensor | None] = dict.fromkeys(found.looked)
    _check(found.look.file, "output", judged["look"].outputs, anything, others=True)
    given = dict.fromkeys(found.fed)
    step = {found.step.words: OnnxTensor(INT64, (number,)), **given}
    _check(found.step.file, "input", judged["step"].inputs, step)
    made = {found.step.logits: OnnxTensor(FLOAT, (number, words))}
    after = dict.fromkeys(each.after for each in found.state)
    _check(found.step.file, "output", judged["step"].outputs, {**made, **after}, others=True)
    if found.score is None:
        return
    read = {found.score.words: OnnxTensor(INT64, (number, number)), **given}
    there = judged["score"].inputs
    wanted = {name: each for name, each in read.items() if name in there or each is not None}
    _check(found.score.file, "input", there, wanted)
    logits = {found.score.logits: OnnxTensor(FLOAT, (number, number, words))}
    _check(found.score.file, "output", judged["score"].outputs, logits, others=True)


def _check(
    file: str,
    kind: str,
    there: Mapping[str, OnnxTensor],
    wanted: Mapping[str, OnnxTensor | None],
    *,
    others: bool = False,
) -> None:
    for name, tensor in wanted.items():
        found = there.get(name)
        if found is None:
            names = ", ".join(map(repr, there)) or "none"
            raise GraphInvalid(
                f"{file}: expected an {kind} {name!r}, found {names:.300}", pointer=f"/{file}"
            )
        if tensor is not None and not _fits(found, tensor):
            raise GraphInvalid(
                f"{file}, {kind} {name!r}: expected {tensor}, found {found}", pointer=f"/{file}"
            )
    more = [] if others else [name for name in there if name not in wanted]
    if more:
        raise GraphInvalid(
            f"{file}: {manifest.MANIFEST_FILE} does not say what its {kind} {more[0]!r:.100} is",
            pointer=f"/{file}",
        )


def _fits(found: OnnxTensor, wanted: OnnxTensor) -> bool:
    if found.type != wanted.type:
        return False
    if found.shape is None or wanted.shape is None:
        return True
    if len(found.shape) != len(wanted.shape):
        return False
    pairs = zip(found.shape, wanted.shape, strict=True)
    return all(one == two or one is None for one, two in pairs if two is not None)
