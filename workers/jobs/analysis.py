"""Jobs of analysis: comparisons of systems, estimates during decoding, forecasts."""

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING

from prescore.models.comparisons import Compared
from prescore.models.evaluations import Estimate, Forecast
from service.contract import results
from service.contract.errors import MetricFailed
from service.contract.plan.estimates import read_history
from service.contract.results import ForecastHistory, ForecastSummary, ScoreSummary
from workers.jobs.request import JobRequest, JobResult, make_summary_result, read_references
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from workers.analysis.comparison import PairedDifference
    from workers.analysis.looks import LookBatch
    from workers.metrics.family import FamilyScores, Statistics


def compare_systems(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """Compare two score files of the same images; with `pregen`, two columns files, and the
    references that these are of where a metric counts their bytes.
    """
    from workers.analysis import comparison
    from workers.analysis.pregen_intervals import PregenColumns
    from workers.inference import columns as columns_file
    from workers.metrics import postgen

    a, b = request.inputs["a"], request.inputs["b"]
    if "pregen" not in request.parameters:
        ours, theirs = postgen.read_scores(a), postgen.read_scores(b)
        images = len(next(iter(ours.captions.values())))
        return _result(comparison.compare_scores(ours, theirs, progress=progress), images)
    people = read_references(request) if "dataset" in request.inputs else None
    mine, others = (PregenColumns.of(columns_file.read_columns(path)[0], people) for path in (a, b))
    names = request.parameters["pregen"]
    images = len(mine.image_offsets) - 1
    return _result(comparison.compare_pregen(mine, others, names, progress=progress), images)


def _result(found: "Mapping[str, PairedDifference]", images: int) -> JobResult:
    from workers.analysis import resamples

    return make_summary_result(
        results.ComparisonSummary(
            comparison={name: Compared(**asdict(each)) for name, each in found.items()},
            resampling={"trials": resamples.TRIALS, "seed": resamples.SEED},
            images_compared=images,
        )
    )


def draw_order(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """Draw an order of images, seeded by the columns: each checkpoint has its own order. With past
    systems' scores, images on which these differ come earlier.
    """
    from workers.analysis import image_order, past_systems
    from workers.inference import columns as columns_file

    known = image_order.describe_images(columns_file.read_columns(request.inputs["columns"])[0])
    seed = int(request.digests["columns"].removeprefix("sha256:"), 16)
    past = past_systems.summarise_systems(_read_history(request, len(known)))
    if past is None:
        images = image_order.draw_image_order(known, seed)
    else:
        images = image_order.draw_image_order(past.hardness, seed, past.odds)
    found = image_order.ImageOrder(images, known, past)
    return JobResult(lambda path: image_order.write_image_order(path, found))


def take_look(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Estimate scores from all captions so far: the previous look's and the new ones.

    A joined look is its last part, which has seen all captions.
    """
    from workers.analysis import image_order, looks

    if request.parts:
        seen = looks.read_looks(request.parts[-1])
    else:
        before = request.inputs.get("before")
        names = [name for name in request.inputs if name.startswith("captions")]
        batches = []
        for name in names:
            batches.append(_scored(request, toolbox, name))
            progress(len(batches), len(names))
        seen = looks.add_look(looks.read_looks(before) if before else None, batches)
    order = image_order.read_image_order(request.inputs["order"])
    baselines, parameters = _read_baselines(request, len(order.known)), request.parameters
    tests = parameters.get("tests", 1)
    estimates = looks.estimate_from_looks(seen, order.known, baselines, order.past, tests)
    summary = results.EstimateSummary(
        estimate={name: Estimate.model_validate(each.score) for name, each in estimates.items()},
        signature={name: seen.signatures[name] for name in estimates},
        differences={
            name: found
            for name in parameters.get("margins", ())
            if name in estimates and (found := estimates[name].difference)
        },
    )
    return JobResult(lambda path: looks.write_looks(path, seen), summary)


def _scored(request: JobRequest, toolbox: Toolbox, name: str) -> "LookBatch":
    """Scores of new captions; a metric that fails is left out, since its own task reports why."""
    import numpy as np

    from workers.analysis.looks import LookBatch
    from workers.metrics import postgen

    digests, inputs = request.digests, request.inputs
    prepared = toolbox.references(digests["references"], inputs["references"])
    places, tokens = toolbox.tokens(digests[name], inputs[name], prepared.tokenizer)
    images = np.array(places, np.int64)
    found: list[FamilyScores] = []
    for family in request.parameters["families"]:
        with contextlib.suppress(MetricFailed):
            found.append(postgen.score_tokens(family, tokens, prepared, images, toolbox.jvm()))
    return LookBatch(images, found)


def _read_baselines(request: JobRequest, images: int) -> "dict[str, Statistics]":
    """The baseline's statistics by family, if they are of all images in the split's order."""
    found = {
        name.removeprefix("baseline."): _read_statistics(path, images)
        for name, path in request.inputs.items()
        if name.startswith("baseline.")
    }
    return {family: statistics for family, statistics in found.items() if statistics is not None}


def _read_history(request: JobRequest, images: int) -> "dict[str, list[Statistics]]":
    """Past systems' statistics by family, of those that are of all images."""
    found: dict[str, list[Statistics]] = {}
    for family, paths in read_history(request.inputs).items():
        each = (_read_statistics(path, images) for path in paths)
        found[family] = [statistics for statistics in each if statistics is not None]
    return found


def _read_statistics(path: "Path", images: int) -> "Statistics | None":
    """The statistics of a file of scores; None unless they are of so many images."""
    from workers.metrics import postgen

    statistics = postgen.read_scores(path).statistics
    return statistics if {len(values) for values in statistics.values()} == {images} else None


def forecast_scores(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.analysis import forecasts as forecasting

    history = ForecastHistory.model_validate_json(request.inputs["history"].read_bytes())
    pregen = ScoreSummary.model_validate_json(request.inputs["pregen"].read_bytes()).scores
    found = forecasting.forecast_metrics(history.evaluations, history.metrics, pregen)
    forecasts = {name: Forecast.model_validate(each) for name, each in found.items()}
    return make_summary_result(ForecastSummary(forecast=forecasts))
