"""The trainings of `prescore learned train`, with what they need of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

from service.contract.plan import assets
from workers.cli.learned import reading
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.metrics.learned.fitting import Report
    from workers.metrics.learned.kinds import Model
    from workers.metrics.learned.network import NetworkRecipe
    from workers.metrics.learned.training import Material
    from workers.offline.sources import Source


def by_people(
    material: "Material",
    features: list[str],
    recipe: "NetworkRecipe",
    tokenizer: str,
    toolbox: Toolbox,
    report: "Report",
    heed: Progress,
) -> "Model":
    from workers.metrics import postgen
    from workers.metrics.learned import training

    vectors = assets.of_features(features, toolbox.places).get("vectors")
    return training.train(
        material,
        features,
        toolbox.jvm(),
        recipe,
        score=postgen.score,
        tokenizer=tokenizer,
        **toolbox.features(features, vectors, heed),
        report=report,
    ).model


def by_accord(
    datasets: "list[Source]",
    judgements: Path | None,
    beta: float | None,
    seed: int,
    tokenizer: str,
    toolbox: Toolbox,
    report: "Report",
) -> "Model":
    from workers.analysis.learning import contrast, judged
    from workers.analysis.learning.asked import Asked
    from workers.files import judgements as lines
    from workers.metrics import postgen
    from workers.metrics.accord.training import Recipe

    recipe = Recipe(seed=seed) if beta is None else Recipe(beta, seed=seed)
    told = None if judgements is None else lines.read(judgements)
    inputs = reading.inputs(datasets, judgements=judgements)
    asked = Asked(toolbox.jvm(), postgen.score, tokenizer, recipe, inputs, report)
    people = reading.people(datasets)
    return contrast.learn(people, asked) if told is None else judged.learn(people, told, asked)
