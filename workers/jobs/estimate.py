"""The tasks of estimates during decoding: the order of images, and looks at their scores."""

import contextlib
from typing import TYPE_CHECKING

from prescore.models.evaluations import Estimate
from service.contract import results
from service.contract.errors import MetricFailed
from workers.jobs.request import Request, Result
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.analysis.estimate.looks import Batch
    from workers.metrics.family import Scores, Statistics


def draw(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    """Draw an order of images, seeded by the columns: each checkpoint has its own order."""
    from workers.analysis.estimate import order
    from workers.inference import columns as columns_file

    known = order.informative(columns_file.read_columns(request.inputs["columns"])[0])
    seed = int(request.digests["columns"].removeprefix("sha256:"), 16)
    found = order.Drawn(order.draw(known, seed), known)
    return Result(lambda path: order.write(path, found))


def look(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """Estimate scores from all captions so far: the previous look's and the new ones.

    A joined look is its last part, which has seen all captions.
    """
    from workers.analysis.estimate import looks, order

    if request.parts:
        seen = looks.read(request.parts[-1])
    else:
        before = request.inputs.get("before")
        names = [name for name in request.inputs if name.startswith("captions")]
        batches = []
        for name in names:
            batches.append(_scored(request, toolbox, name))
            progress(len(batches), len(names))
        seen = looks.after(looks.read(before) if before else None, batches)
    known = order.read(request.inputs["order"]).known
    estimates = looks.tell(seen, known, _baselines(request, len(known)))
    summary = results.Estimated(
        estimate={name: Estimate.model_validate(each) for name, each in estimates.items()},
        signature={name: seen.signatures[name] for name in estimates},
    )
    return Result(lambda path: looks.write(path, seen), summary)


def _scored(request: Request, toolbox: Toolbox, name: str) -> "Batch":
    """Scores of new captions; a metric that fails is left out, since its own task reports why."""
    import numpy as np

    from workers.analysis.estimate.looks import Batch
    from workers.metrics import postgen

    digests, inputs = request.digests, request.inputs
    prepared = toolbox.references(digests["references"], inputs["references"])
    places, tokens = toolbox.tokens(digests[name], inputs[name], prepared.tokenizer)
    images = np.array(places, np.int64)
    found: list[Scores] = []
    for family in request.parameters["families"]:
        with contextlib.suppress(MetricFailed):
            found.append(postgen.score_tokens(family, tokens, prepared, images, toolbox.jvm()))
    return Batch(images, found)


def _baselines(request: Request, images: int) -> "dict[str, Statistics]":
    """The baseline's statistics by family, if they are of all images in the split's order."""
    from workers.metrics import postgen

    found = {
        name.removeprefix("baseline."): postgen.read(path).statistics
        for name, path in request.inputs.items()
        if name.startswith("baseline.")
    }
    return {
        family: statistics
        for family, statistics in found.items()
        if {len(values) for values in statistics.values()} == {images}
    }
