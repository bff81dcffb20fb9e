"""The tasks of the post-gen metrics: prepared references and captions, and scores."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from service.contract.formats import outputs
from service.contract.metrics.families import FAMILIES
from service.contract.results import ScoreSummary
from workers.jobs.request import Job, JobRequest, JobResult, read_pairs, read_references
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.metrics.family import FamilyScores, Floats, ScoringInput
    from workers.metrics.scene_graphs import Parse


def prepare_references(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.metrics import references

    prepared = references.prepare_references(
        read_references(request), request.parameters["tokenizer"], toolbox.jvm()
    )
    return JobResult(lambda path: references.write_references(path, prepared))


def parse_tuples(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Parse captions, or else references, of a split or a part of it to SPICE's tuples."""
    from workers.metrics import spice_tuples

    if request.parts:
        found = dict(
            item for path in request.parts for item in spice_tuples.read_tuples(path).items()
        )
        return JobResult(lambda path: spice_tuples.write_tuples(path, found))
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
    return JobResult(lambda path: spice_tuples.write_tuples(path, parsed))


def make_scoring_job(family: str) -> Job:
    """The job that scores captions by a family of metrics."""

    def run(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
        from workers.metrics import postgen

        parts = FAMILIES[family].made_of
        if not parts:
            task = _scoring_input(family, request, toolbox, progress)
            postgen.check_blanks(family, task)
            return _scored(postgen.score_family(family, task))
        known = {part: postgen.read_scores(request.inputs[part]) for part in parts}
        prepared = toolbox.references(request.digests["references"], request.inputs["references"])
        return _scored(postgen.join_scores(family, known, prepared))

    return run


def _scoring_input(
    family: str, request: JobRequest, toolbox: Toolbox, progress: Progress
) -> "ScoringInput":
    import numpy as np

    from workers.metrics.family import ScoringInput

    row, asked = FAMILIES[family], request.parameters
    inputs, digests = request.inputs, request.digests
    prepared, tokenizer = None, asked.get("tokenizer", "")
    if "references" in inputs:
        prepared = toolbox.references(digests["references"], inputs["references"])
        tokenizer = prepared.tokenizer
    tools = _tools(family, request, toolbox)
    if row.reads != "tokens":
        places, captions = read_pairs(inputs["captions"])
        tools["texts"] = captions
    if row.reads != "texts":
        places, captions = toolbox.tokens(digests["captions"], inputs["captions"], tokenizer)
    return ScoringInput(
        captions,
        np.array(places, np.int64),
        prepared,
        toolbox.jvm(),
        idf=asked.get("idf", "dataset") if row.is_weighted else "dataset",
        progress=progress,
        tokenizer=None if row.reads == "texts" else tokenizer,
        tools=tools,
        own=asked,
    )


def _tools(family: str, request: JobRequest, toolbox: Toolbox) -> dict[str, Any]:
    """A family's tools: from the request's inputs if it has them, else from this machine."""
    from workers.metrics.families import bertscore, variety
    from workers.metrics.vectors import sentences

    inputs, asked = request.inputs, request.parameters
    tools: dict[str, Any] = {}
    for need in FAMILIES[family].needs:
        match need:
            case "tuples":
                tools["parse"] = _parsed(request)
            case "embedded":
                tools["embedded"] = bertscore.read(inputs["embedded_references"])
            case "sentences":
                tools["sentences"] = sentences.read(inputs["reference_sentences"])
            case "model" if "model" in inputs:
                digest = request.digests["model"]
                tools |= toolbox.named(family, digest, inputs["model"], asked)
            case "training" if "training" in inputs:
                tools["training"] = variety.read_keys(inputs["training"])
            case _:
                tools |= toolbox.need(family, need, asked)
    return tools


def _parsed(request: JobRequest) -> "Parse":
    """A parser that returns the tuples in the request's inputs."""
    from workers.metrics import spice_tuples

    names = ("reference_tuples", "tuples")
    known = dict(
        item for name in names for item in spice_tuples.read_tuples(request.inputs[name]).items()
    )
    return lambda _: known


def embed_references(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Embed the tokens of references, which are taken as they were written."""
    from workers.metrics.families import bertscore

    return _embedded(bertscore, request, toolbox, progress)


def embed_sentences(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Embed references as sentences, as they were written."""
    from workers.metrics.vectors import sentences

    return _embedded(sentences, request, toolbox, progress)


def _embedded(
    form: ModuleType, request: JobRequest, toolbox: Toolbox, progress: Progress
) -> JobResult:
    """References embedded by the functions of a module: prepare, join, read, write."""
    if request.parts:
        joined = form.join([form.read(path) for path in request.parts])
        return JobResult(lambda path: form.write(path, joined))
    asked = request.parameters
    encoder = toolbox.encoder(asked["encoder"], asked["layer"])
    found = form.prepare(read_references(request), encoder, progress=progress)
    return JobResult(lambda path: form.write(path, found))


def store_training_keys(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """Store keys of a training split's captions, by which equal captions can be recognised."""
    from workers.metrics.families import variety
    from workers.metrics.tokens import tokenize

    flat = [caption for captions in read_references(request) for caption in captions]
    tokens = tokenize(flat, request.parameters["tokenizer"], toolbox.jvm())
    return JobResult(lambda path: variety.write_keys(path, variety.make_keys(tokens)))


def _scored(found: "FamilyScores") -> JobResult:
    from workers.analysis import resamples
    from workers.metrics import postgen

    resampled = resamples.resample_sums(resamples.sum_scores(found))
    summary = ScoreSummary(
        scores=dict(found.corpus),
        intervals=dict(resamples.compute_percentiles(resampled)),
        draws=resamples.pack_draws(resampled),
        resampling=dict(resamples.RESAMPLING),
        flat=_flat(found),
        signature=dict(found.signatures),
    )
    sure = summary.model_dump(include={"intervals", "resampling"})
    return JobResult(lambda path: postgen.write_scores(path, found, sure), summary)


def _flat(found: "FamilyScores") -> dict[str, int]:
    """The metrics that say the same of all captions, if there are enough to tell."""
    return {
        name: len(values)
        for name, values in found.captions.items()
        if len(values) >= outputs.FEW and _spread(values) < outputs.SPREAD
    }


def _spread(values: "Floats") -> float:
    """Range of the values; 0 if they are infinite and all the same."""
    low, high = float(values.min()), float(values.max())
    return high - low if high > low else 0.0
