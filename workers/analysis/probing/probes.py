"""The six probes by name."""

from collections.abc import Callable, Mapping

from service.contract.errors import InvalidRequest
from workers.analysis.probing.asking import Asked, Options
from workers.analysis.probing.first_references import frequent, random, rare, swap
from workers.analysis.probing.material import Material
from workers.analysis.probing.people import human
from workers.analysis.probing.scoring import Scorer
from workers.analysis.probing.single import single
from workers.analysis.probing.table import Row
from workers.progress import Progress, ignore_progress

PROBES: Mapping[str, Callable[[Asked], list[Row]]] = {
    "human": human,
    "frequent": frequent,
    "rare": rare,
    "swap": swap,
    "random": random,
    "single": single,
}


def run(
    probe: str,
    material: Material,
    score: Scorer,
    options: Options = Options(),
    *,
    progress: Progress = ignore_progress,
) -> list[Row]:
    """Run a probe. Returns its table; its first row is what the other rows are compared with. A row
    that cannot be computed says why.
    """
    if probe not in PROBES:
        known = ", ".join(PROBES)
        raise InvalidRequest(f"expected one of the probes {known}, found {probe!r:.60}")
    return PROBES[probe](Asked(material, score, options, progress))
