"""Judges an ONNX bundle as far as it can be without running it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.contract.errors import GraphInvalid, InvalidPackage, VocabularyInvalid
from service.contract.formats import checkpoint_header
from service.contract.formats.onnx_bundles import graphs, manifest
from service.contract.formats.onnx_bundles.graphs import Graph, Tensor
from service.contract.formats.onnx_bundles.manifest import Manifest, Pieces, Vocabulary
from service.contract.formats.onnx_bundles.messages import FLOAT, INT64
from service.contract.formats.packages import MOST_TOKENIZER_BYTES, Package, Place

MOST_VOCABULARY_BYTES = 20_000_000
_CHANNELS = 3


@dataclass(frozen=True)
class Bundle:
    """`words` by the network's ids, none where its tokens are pieces; `places`: where the bytes of
    each graph lie.
    """

    manifest: Manifest
    words: tuple[str, ...]
    graphs: Mapping[str, Graph]
    places: Mapping[str, Place]

    @property
    def size(self) -> int:
        """How many tokens the network knows."""
        pieces = self.manifest.pieces
        return len(self.words) if pieces is None else pieces.size

    @property
    def parameters(self) -> int:
        return sum(graph.parameters for graph in self.graphs.values())


def words_of(package: Package) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest, and its words by the network's ids, if any. Raises InvalidCheckpoint."""
    found = manifest.parse(package.text(manifest.FILE, manifest.MAX_BYTES))
    return found, _words(package, found)


def judge(package: Package) -> Bundle:
    """Raises InvalidCheckpoint with what is wrong, and in which file."""
    found, words = words_of(package)
    parts = {"look": found.look, "step": found.step, "score": found.score}
    files = {name: part.file for name, part in parts.items() if part is not None}
    of_tokens = found.tokens.file
    if len({*files.values(), of_tokens}) <= len(files):
        raise InvalidPackage(f"{manifest.FILE}: names one file for two parts")
    places = {name: _place(package, file) for name, file in files.items()}
    _check_files(package, {manifest.FILE, of_tokens, *files.values()})
    judged = {name: _graph(package, file, places[name].size) for name, file in files.items()}
    bundle = Bundle(found, words, judged, places)
    _check_names(bundle)
    return bundle


def _words(package: Package, found: Manifest) -> tuple[str, ...]:
    if found.pieces is not None:
        _check_pieces(package, found.pieces)
        return ()
    special = found.vocabulary
    assert special is not None
    words = checkpoint_header.words_of(
        package.text(special.file, MOST_VOCABULARY_BYTES), special.file
    )
    _check_ids("vocabulary", special, ("start", "end", "unknown"), len(words))
    if special.unknown in (special.start, special.end):
        raise VocabularyInvalid(
            f"{manifest.FILE}, vocabulary/unknown: is also the start or the end of captions",
            pointer=f"/{manifest.FILE}/vocabulary/unknown",
        )
    return words


def _check_pieces(package: Package, found: Pieces) -> None:
    """What the tokenizer is, a task finds out: to open one may take much."""
    size = package.file(found.file).size
    if size > MOST_TOKENIZER_BYTES:
        raise VocabularyInvalid(
            f"{found.file}: {size:,} bytes, at most {MOST_TOKENIZER_BYTES:,} are accepted",
            pointer=f"/{found.file}",
        )
    _check_ids("pieces", found, ("start", "end"), found.size)


def _check_ids(part: str, found: Vocabulary | Pieces, names: Sequence[str], size: int) -> None:
    for name in names:
        if getattr(found, name) >= size:
            raise VocabularyInvalid(
                f"{manifest.FILE}, {part}/{name}: expected the id of one of {size} "
                f"{'words' if part == 'vocabulary' else part}, found {getattr(found, name)}",
                pointer=f"/{manifest.FILE}/{part}/{name}",
            )


def _check_files(package: Package, named: Collection[str]) -> None:
    """Other files may be notes; other values are none that a graph could have asked for."""
    for file in sorted(package.files):
        if file not in named and file.endswith((".onnx", ".data", ".onnx_data")):
            raise InvalidPackage(
                f"{file}: {manifest.FILE} does not name it; a graph has all its values inside "
                "(external data is not accepted)",
                pointer=f"/{file}",
            )


def _place(package: Package, file: str) -> Place:
    place = package.file(file).place
    if place is None:
        raise InvalidPackage(
            f"{file}: is compressed; pack the bundle as a tar, or by `zip -0`", pointer=f"/{file}"
        )
    return place


def _graph(package: Package, file: str, size: int) -> Graph:
    with package.file(file).open() as stream:
        return graphs.judge(stream, size, file)


def _check_names(bundle: Bundle) -> None:
    """Every graph has the inputs and outputs that the manifest names, no other input, and tensors
    of the right types and sizes as far as it says them.
    """
    found, judged, words = bundle.manifest, bundle.graphs, bundle.size
    number, pictures = None, found.preprocessing
    image = (found.feature_size,) if pictures is None else (_CHANNELS, *pictures.shape)
    look = {found.seen: Tensor(FLOAT, (number, *image))}
    _check(found.look.file, "input", judged["look"].inputs, look)
    anything: dict[str, Tensor | None] = dict.fromkeys(found.looked)
    _check(found.look.file, "output", judged["look"].outputs, anything, others=True)
    given = dict.fromkeys(found.fed)
    step = {found.step.words: Tensor(INT64, (number,)), **given}
    _check(found.step.file, "input", judged["step"].inputs, step)
    made = {found.step.logits: Tensor(FLOAT, (number, words))}
    after = dict.fromkeys(each.after for each in found.state)
    _check(found.step.file, "output", judged["step"].outputs, {**made, **after}, others=True)
    if found.score is None:
        return
    read = {found.score.words: Tensor(INT64, (number, number)), **given}
    there = judged["score"].inputs
    wanted = {name: each for name, each in read.items() if name in there or each is not None}
    _check(found.score.file, "input", there, wanted)
    logits = {found.score.logits: Tensor(FLOAT, (number, number, words))}
    _check(found.score.file, "output", judged["score"].outputs, logits, others=True)


def _check(
    file: str,
    kind: str,
    there: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor | None],
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
            f"{file}: {manifest.FILE} does not say what its {kind} {more[0]!r:.100} is",
            pointer=f"/{file}",
        )


def _fits(found: Tensor, wanted: Tensor) -> bool:
    if found.type != wanted.type:
        return False
    if found.shape is None or wanted.shape is None:
        return True
    if len(found.shape) != len(wanted.shape):
        return False
    pairs = zip(found.shape, wanted.shape, strict=True)
    return all(one == two or one is None for one, two in pairs if two is not None)
