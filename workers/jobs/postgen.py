"""The works of the post-gen metrics: what is prepared of references and captions, and scores."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.contract.formats import bundles
from service.contract.metrics.catalogue import LEARNED
from service.contract.results import Scored
from workers.jobs.request import Job, Request, Result, read_pairs
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.metrics.postgen import Scores
    from workers.metrics.scenes.scene_graphs import Parse


def prepare_references(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.metrics import references

    prepared = references.prepare(_people(request), request.parameters["tokenizer"], toolbox.jvm())
    return Result(lambda path: references.write(path, prepared))


def parse_tuples(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """SPICE's tuples of the captions, or of the references, of a split or a part of it."""
    from workers.metrics.scenes import tuples

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


def score(family: str) -> Job:
    """The job of a family that scores tokens."""

    def run(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
        import numpy as np

        from workers.metrics import postgen

        inputs, digests, asked = request.inputs, request.digests, request.parameters
        prepared = toolbox.references(digests["references"], inputs["references"])
        places, tokens = toolbox.tokens(digests["captions"], inputs["captions"], prepared.tokenizer)
        found = postgen.score_tokens(
            family,
            tokens,
            prepared,
            np.array(places, np.int64),
            toolbox.jvm(),
            parse=_parsed(request),
            vectors=toolbox.vectors(asked["vectors"]) if "vectors" in asked else None,
            idf=asked.get("idf", "dataset"),
            progress=progress,
        )
        return _scored(found)

    return run


def _parsed(request: Request) -> "Parse | None":
    """What the works of tuples found."""
    from workers.metrics.scenes import tuples

    names = [name for name in ("reference_tuples", "tuples") if name in request.inputs]
    if not names:
        return None
    known = dict(item for name in names for item in tuples.read(request.inputs[name]).items())
    return lambda _: known


def join_spider(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.metrics import postgen

    of_spice, of_cider_d = (postgen.read(request.inputs[name]) for name in ("spice", "cider_d"))
    prepared = toolbox.references(request.digests["references"], request.inputs["references"])
    return _scored(postgen.spider_of(of_spice, of_cider_d, prepared))


def embed_references(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """For BERTScore, which takes people's captions as they are."""
    from workers.metrics.families import bertscore

    if request.parts:
        joined = bertscore.join([bertscore.read(path) for path in request.parts])
        return Result(lambda path: bertscore.write(path, joined))
    asked = request.parameters
    encoder = toolbox.encoder(asked["encoder"], asked["layer"])
    found = bertscore.prepare(_people(request), encoder, progress=progress)
    return Result(lambda path: bertscore.write(path, found))


def score_bertscore(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    from workers.metrics import postgen
    from workers.metrics.families import bertscore

    asked = request.parameters
    places, captions = read_pairs(request.inputs["captions"])
    prepared = bertscore.read(request.inputs["embedded_references"])
    encoder = toolbox.encoder(asked["encoder"], asked["layer"])
    options = {name: asked[name] for name in ("idf", "baseline")}
    found = postgen.score_texts(captions, places, prepared, encoder, **options, progress=progress)
    return _scored(found)


def score_learned(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    import numpy as np

    from workers.metrics.learned import scoring

    inputs, digests, asked = request.inputs, request.digests, request.parameters
    prepared = toolbox.references(digests["references"], inputs["references"])
    if "model" in inputs:
        model = toolbox.trained(digests["model"], inputs["model"])
        needs = {"model": model, **toolbox.features(model.features, asked["vectors"])}
        name = model.name
    else:
        needs, name = toolbox.bring(LEARNED, asked), LEARNED
    places, tokens = toolbox.tokens(digests["captions"], inputs["captions"], prepared.tokenizer)
    found = scoring.score_tokens(
        tokens,
        prepared,
        np.array(places, np.int64),
        toolbox.jvm(),
        **needs,
        name=name,
        progress=progress,
    )
    return _scored(found)


def keep_training(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    """The captions of a training split, as far as it takes to know one of them again."""
    from workers.files import tensor_files
    from workers.metrics.families import variety
    from workers.metrics.tokens import tokenize

    flat = [caption for captions in _people(request) for caption in captions]
    tokens = tokenize(flat, request.parameters["tokenizer"], toolbox.jvm())
    keys = variety.keys(tokens)
    tensors = {"keys": keys.view("u1").reshape(len(keys), -1)}
    return Result(lambda path: tensor_files.write(path, tensors, {"prescore_training": "1"}))


def describe_captions(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001

    from workers.metrics import postgen
    from workers.metrics.families import variety

    inputs = request.inputs
    tokenizer = request.parameters["tokenizer"]
    _, tokens = toolbox.tokens(request.digests["captions"], inputs["captions"], tokenizer)
    training = None
    if "training" in inputs:
        from safetensors.numpy import load_file

        keys = load_file(inputs["training"])["keys"]
        training = keys.reshape(-1).view(f"S{keys.shape[1]}")
    return _scored(postgen.described(variety.measure(tokens, training), tokenizer))


def _people(request: Request) -> Sequence[Sequence[str]]:
    """What people said of the images of a split, or of a part of it."""
    items = bundles.read_split(request.inputs["dataset"], request.parameters["split"])
    start, stop = request.parameters.get("images", (0, len(items)))
    return [item.references for item in items[start:stop]]


def _scored(found: "Scores") -> Result:
    from workers.analysis.uncertainty import intervals
    from workers.metrics import postgen

    summary = Scored(
        scores=dict(found.corpus),
        intervals=dict(intervals.of(found)),
        resampling=dict(intervals.HOW),
        signature=dict(found.signatures),
    )
    sure = summary.model_dump(include={"intervals", "resampling"})
    return Result(lambda path: postgen.write(path, found, sure), summary)
