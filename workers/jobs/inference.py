"""The works that need a model, and the pre-gen scores."""

import json
from collections.abc import Mapping
from typing import Any

from service.contract import bundles
from workers.control import Progress
from workers.jobs.request import Request, Result, write_json
from workers.toolbox import Toolbox


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


def prefix(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    from workers import prefix
    from workers.metrics import pregen

    model, rows, encoded = _references_of(request, toolbox)
    prefixes = prefix.walk(model, rows, encoded, progress)
    scores = pregen.from_prefixes(prefixes, encoded.lengths, encoded.image_offsets)
    return _scores_result(scores, "prefix")


def columns(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
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


def pregen(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers import columns as columns_file
    from workers.metrics import pregen

    found, metadata = columns_file.read(request.inputs["columns"])
    scores = pregen.scores(found.logp, found.rank, found.caption_offsets, found.image_offsets)
    return _scores_result(scores, f"columns|{metadata.get('precision', 'fp32')}")


def _scores_result(scores: Mapping[str, float], how: str) -> Result:
    summary = {"scores": dict(scores), "signature": f"pregen|{how}|v:1"}
    return Result(lambda path: write_json(path, summary), summary)


def captions(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """[place in the split, caption] pairs."""
    from workers import decoding

    if request.parts:
        pairs = [pair for path in request.parts for pair in json.loads(path.read_text("utf-8"))]
        return Result(lambda path: write_json(path, pairs))
    model, rows, _ = _references_of(request, toolbox)
    asked = request.parameters["decoding"]
    found = decoding.decode(model, rows, decoding.Options(**asked), progress)
    start = request.parameters.get("images", (0,))[0]
    pairs = [[start + at, decoding.text(model, caption)] for at, caption in enumerate(found)]
    return Result(lambda path: write_json(path, pairs))
