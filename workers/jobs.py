"""One function for each kind of work: inputs as files in, one file and a summary out.

`perform` is what the warm child calls. Nothing here knows of databases, queues or object stores:
the parent brings the inputs and takes the result away.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contract import assets, bundles
from workers.control import Progress, silent

if TYPE_CHECKING:
    from workers.captioners import Recurrent
    from workers.metrics.jvm import Jvm
    from workers.metrics.postgen import Scores
    from workers.metrics.references import References
    from workers.metrics.scene_graphs import Parse
    from workers.metrics.tokens import Tokenizer
    from workers.metrics.tuples import Parser


@dataclass(frozen=True)
class Request:
    """What a kind's function works on: checked local files, by the names of its inputs."""

    inputs: Mapping[str, Path]
    digests: Mapping[str, str]
    parts: Sequence[Path]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """`write` puts the result into a file; `summary` is what the record itself keeps."""

    write: Callable[[Path], None]
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Toolbox:
    """What stays warm between works."""

    device: str
    places: assets.Places
    _model: "tuple[str, Recurrent] | None" = None
    _jvm: "Jvm | None" = None
    _references: "tuple[str, References] | None" = None
    _tokens: tuple[tuple[str, str], list[int], list[str]] | None = None
    _parser: "Parser | None" = None

    @classmethod
    def from_environment(cls) -> "Toolbox":
        return cls(os.environ["PRESCORE_DEVICE"], assets.Places.from_environment(os.environ))

    def model(self, digest: str, path: Path) -> "Recurrent":
        from workers import checkpoints, devices

        if self._model is None or self._model[0] != digest:
            self._model = None  # the old one first: two may not fit
            self._model = (digest, checkpoints.read(path, devices.resolve(self.device)))
        return self._model[1]

    def jvm(self) -> "Jvm":
        from workers.metrics.jvm import Jvm

        if self._jvm is None:
            self._jvm = Jvm()
        return self._jvm

    def references(self, digest: str, path: Path) -> "References":
        """The metrics of an evaluation come here one after the other for the same."""
        from workers.metrics import references

        if self._references is None or self._references[0] != digest:
            self._references = None
            self._references = (digest, references.read(path))
        return self._references[1]

    def tokens(
        self, digest: str, path: Path, tokenizer: "Tokenizer"
    ) -> tuple[list[int], list[str]]:
        """Places in the split and tokenised captions."""
        from workers.metrics.tokens import tokenize

        asked = (digest, tokenizer)
        if self._tokens is None or self._tokens[0] != asked:
            pairs = json.loads(path.read_text("utf-8"))
            captions = tokenize([caption for _, caption in pairs], tokenizer, self.jvm())
            self._tokens = (asked, [place for place, _ in pairs], captions)
        return self._tokens[1:]

    def parser(self) -> "Parser":
        """MetricUnavailable where SPICE's files are not here."""
        from workers.metrics import tuples

        if self._parser is None:
            self._parser = tuples.from_assets(self.places)
        return self._parser


def perform(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = silent
) -> dict[str, Any]:
    """Writes the result where the request says; the answer is its summary.

    `files` in the request are the checked files of all digests that it names.
    """
    paths = {digest: Path(path) for digest, path in request["files"].items()}
    given = Request(
        inputs={name: paths[digest] for name, digest in request["inputs"].items()},
        digests=request["inputs"],
        parts=[paths[digest] for digest in request["parts"]],
        parameters=request["parameters"],
    )
    result = KINDS[request["kind"]](given, toolbox, progress)
    result.write(Path(request["result"]))
    return {"summary": dict(result.summary)}


def _references_of(request: Request, toolbox: Toolbox) -> tuple[Any, Any, Any]:
    """Model, features and encoded references of a split, or of the part that is asked for."""
    from workers import features, vocabulary

    model = toolbox.model(request.digests["checkpoint"], request.inputs["checkpoint"])
    dataset = request.inputs["dataset"]
    items = bundles.read_split(dataset, request.parameters["split"])
    start, stop = request.parameters.get("images", (0, len(items)))
    items = items[start:stop]
    rows = features.read(dataset, [item.image for item in items], model.description.encoder)
    description = model.description
    encoded = vocabulary.encode(
        [item.references for item in items], description.vocabulary, description.tokenizer
    )
    return model, rows, encoded


def _prefix(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    from workers import prefix
    from workers.metrics import pregen

    model, rows, encoded = _references_of(request, toolbox)
    prefixes = prefix.walk(model, rows, encoded, progress)
    scores = pregen.from_prefixes(prefixes, encoded.lengths, encoded.image_offsets)
    return _scores_result(scores, "prefix")


def _columns(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    from workers import columns as columns_file
    from workers import scoring

    if request.parts:
        parts = [columns_file.read(path)[0] for path in request.parts]
        found = columns_file.concatenate(parts)
    else:
        model, rows, encoded = _references_of(request, toolbox)
        found = scoring.columns(model, rows, encoded, progress=progress)
    metadata = {"precision": "fp32", "checkpoint": request.digests["checkpoint"]}
    return Result(lambda path: columns_file.write(path, found, metadata))


def _pregen(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers import columns as columns_file
    from workers.metrics import pregen

    found, metadata = columns_file.read(request.inputs["columns"])
    scores = pregen.scores(found.logp, found.rank, found.caption_offsets, found.image_offsets)
    return _scores_result(scores, f"columns|{metadata.get('precision', 'fp32')}")


def _scores_result(scores: Mapping[str, float], how: str) -> Result:
    summary = {"scores": dict(scores), "signature": f"pregen|{how}|v:1"}
    return Result(lambda path: _write_json(path, summary), summary)


def _captions(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """[place in the split, caption] pairs."""
    from workers import decoding

    if request.parts:
        pairs = [pair for path in request.parts for pair in json.loads(path.read_text("utf-8"))]
        return Result(lambda path: _write_json(path, pairs))
    model, rows, _ = _references_of(request, toolbox)
    asked = request.parameters["decoding"]
    found = decoding.decode(model, rows, decoding.Options(**asked), progress)
    start = request.parameters.get("images", (0,))[0]
    pairs = [[start + at, decoding.text(model, caption)] for at, caption in enumerate(found)]
    return Result(lambda path: _write_json(path, pairs))


def _references(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.metrics import references

    items = bundles.read_split(request.inputs["dataset"], request.parameters["split"])
    prepared = references.prepare(
        [item.references for item in items], request.parameters["tokenizer"], toolbox.jvm()
    )
    return Result(lambda path: references.write(path, prepared))


def _tuples(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """SPICE's tuples of the captions, or of the references, of a split or a part of it."""
    from workers.metrics import tuples

    if request.parts:
        found = dict(item for path in request.parts for item in tuples.read(path).items())
        return Result(lambda path: tuples.write(path, found))
    parser = toolbox.parser()
    inputs, digests = request.inputs, request.digests
    start, stop = request.parameters.get("images", (0, sys.maxsize))
    if "references" in inputs:
        prepared = toolbox.references(digests["references"], inputs["references"])
        people = prepared.captions[start:stop]
        images, texts = len(people), [caption for image in people for caption in image]
    else:
        tokenizer = request.parameters["tokenizer"]
        places, tokens = toolbox.tokens(digests["captions"], inputs["captions"], tokenizer)
        pairs = zip(places, tokens, strict=True)
        texts = [caption for place, caption in pairs if start <= place < stop]
        images = len(texts)
    parsed = parser.parse(
        texts, progress=lambda done, total: progress(images * done // max(total, 1), images)
    )
    return Result(lambda path: tuples.write(path, parsed))


def _postgen(family: str) -> Callable[[Request, Toolbox, Progress], Result]:
    def score(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
        import numpy as np

        from workers.metrics import postgen

        inputs, digests = request.inputs, request.digests
        prepared = toolbox.references(digests["references"], inputs["references"])
        places, tokens = toolbox.tokens(digests["captions"], inputs["captions"], prepared.tokenizer)
        rows = np.array(places, np.int64)
        found = postgen.score_tokens(
            family,
            tokens,
            prepared,
            rows,
            toolbox.jvm(),
            parse=_parsed(request),
            idf=request.parameters.get("idf", "dataset"),
            progress=progress,
        )
        return _postgen_result(found)

    return score


def _parsed(request: Request) -> "Parse | None":
    """What the works of tuples found."""
    from workers.metrics import tuples

    names = [name for name in ("reference_tuples", "tuples") if name in request.inputs]
    if not names:
        return None
    known = dict(item for name in names for item in tuples.read(request.inputs[name]).items())
    return lambda _: known


def _spider(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.metrics import postgen

    of_spice, of_cider_d = (postgen.read(request.inputs[name]) for name in ("spice", "cider_d"))
    prepared = toolbox.references(request.digests["references"], request.inputs["references"])
    return _postgen_result(postgen.spider_of(of_spice, of_cider_d, prepared))


def _postgen_result(found: "Scores") -> Result:
    from workers.metrics import postgen

    summary = {"scores": found.corpus, "signature": found.signatures}
    return Result(lambda path: postgen.write(path, found), summary)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


KINDS: Mapping[str, Callable[[Request, Toolbox, Progress], Result]] = {
    "prefix": _prefix,
    "columns": _columns,
    "pregen": _pregen,
    "captions": _captions,
    "references": _references,
    "bleu": _postgen("bleu"),
    "rouge_l": _postgen("rouge_l"),
    "cider_d": _postgen("cider_d"),
    "cider": _postgen("cider"),
    "meteor": _postgen("meteor"),
    "tuples": _tuples,
    "spice": _postgen("spice"),
    "spider": _spider,
}
