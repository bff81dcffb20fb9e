"""The task that compares two systems, image by image, by the scores of one family."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from prescore.models.comparisons import Compared
from service.contract import results
from workers.jobs.request import Request, Result, summed
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.analysis.uncertainty.comparison import PairedDifference


def compare(request: Request, toolbox: Toolbox, progress: Progress) -> Result:  # noqa: ARG001
    """Compare two score files of the same images; with `pregen`, two columns files."""
    from workers.analysis.uncertainty import comparison
    from workers.analysis.uncertainty.pregen import Material
    from workers.inference import columns as columns_file
    from workers.metrics import postgen

    a, b = request.inputs["a"], request.inputs["b"]
    if "pregen" not in request.parameters:
        return _result(comparison.compare(postgen.read(a), postgen.read(b), progress=progress))
    mine, others = (Material.of(columns_file.read_columns(path)[0]) for path in (a, b))
    names = request.parameters["pregen"]
    return _result(comparison.compare_pregen(mine, others, names, progress=progress))


def _result(found: "Mapping[str, PairedDifference]") -> Result:
    from workers.analysis.uncertainty import resampling

    return summed(
        results.ComparisonSummary(
            comparison={name: Compared(**asdict(each)) for name, each in found.items()},
            resampling={"trials": resampling.TRIALS, "seed": resampling.SEED},
        )
    )
