"""The tasks of a correlation study: each model's strata, and the correlations over all."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from service.contract.metrics.families import kind_of
from service.contract.plan.studies import FAMILIES
from workers.jobs.request import Request, Result, write_json
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.analysis.study.strata import Rescore
    from workers.metrics.ngrams import Ints


def cut_strata(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.analysis.study import strata, tensors
    from workers.inference import columns
    from workers.metrics import postgen

    inputs = request.inputs
    found, _ = columns.read_columns(inputs["columns"])
    scores = {
        family: postgen.read(path) for family, path in inputs.items() if kind_of(family) in FAMILIES
    }
    rescore = _rescoring(request, toolbox) if request.parameters["idf"] == "stratum" else None
    rows = strata.rows(strata.Described(found, scores, rescore), "", "")
    return Result(lambda path: tensors.write(path, rows))


def _rescoring(request: Request, toolbox: Toolbox) -> "Rescore":
    from workers.metrics import postgen

    inputs, digests = request.inputs, request.digests
    references = toolbox.references(digests["references"], inputs["references"])
    places, tokens = toolbox.tokens(digests["captions"], inputs["captions"], references.tokenizer)
    written = dict(zip(places, tokens, strict=True))

    def rescore(family: str, images: "Ints") -> Mapping[str, float]:
        captions = [written[image] for image in images.tolist()]
        jvm = toolbox.jvm()
        return postgen.score_tokens(family, captions, references, images, jvm, idf="subset").corpus

    return rescore


def correlate(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    from workers.analysis.study import correlations, tensors
    from workers.analysis.study.rows import join

    dataset, parts = request.parameters["dataset"], []
    # Not by name: sums in another order have other last bits, and the ids of runs are drawn.
    for name in sorted(request.inputs, key=lambda name: request.digests[name]):
        own = tensors.read(request.inputs[name])
        parts.append(replace(own, datasets=[dataset] * len(own), models=[name] * len(own)))
    found = correlations.study(join(parts))
    return Result(lambda path: write_json(path, found))
