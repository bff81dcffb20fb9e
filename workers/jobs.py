"""One function for each kind of work: inputs as files in, one file and a summary out.

`perform` is what the warm child calls: it finds the inputs by digest, calls a pure function, stores
the result and says its digest. Nothing here knows of databases or queues.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contract import bundles
from service.contract.blobs import FileBlobs
from service.contract.errors import BlobDamaged, BlobMissing
from workers.control import Progress, silent

if TYPE_CHECKING:
    from workers.captioners import Recurrent
    from workers.metrics.jvm import Jvm


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

    blobs: FileBlobs
    device: str
    _model: "tuple[str, Recurrent] | None" = None
    _jvm: "Jvm | None" = None

    @classmethod
    def from_environment(cls) -> "Toolbox":
        return cls(FileBlobs(Path(os.environ["PRESCORE_BLOBS"])), os.environ["PRESCORE_DEVICE"])

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


def perform(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = silent
) -> dict[str, Any]:
    """{"result": digest, "summary": …}, or {"damaged": digest} where an input is not to be had."""
    paths: dict[str, Path] = {}
    for digest in {*request["inputs"].values(), *request["parts"]}:
        try:
            paths[digest] = toolbox.blobs.path(digest)
        except (BlobDamaged, BlobMissing) as error:
            return {"damaged": digest, "detail": error.detail}
    given = Request(
        inputs={name: paths[digest] for name, digest in request["inputs"].items()},
        digests=request["inputs"],
        parts=[paths[digest] for digest in request["parts"]],
        parameters=request["parameters"],
    )
    result = KINDS[request["kind"]](given, toolbox, progress)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result"
        result.write(path)
        digest = toolbox.blobs.put_file(path)
    return {"result": digest, "summary": dict(result.summary)}


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


def _postgen(family: str) -> Callable[[Request, Toolbox, Progress], Result]:
    def score(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
        import numpy as np

        from workers.metrics import postgen, references

        prepared = references.read(request.inputs["references"])
        pairs = json.loads(request.inputs["captions"].read_text("utf-8"))
        rows = np.array([place for place, _ in pairs], np.int64)
        captions = [caption for _, caption in pairs]
        found = postgen.score(family, captions, prepared, rows, toolbox.jvm(), progress=progress)
        summary = {"scores": found.corpus, "signature": found.signatures}
        return Result(lambda path: postgen.write(path, found), summary)

    return score


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
    "meteor": _postgen("meteor"),
}
