"""The work that trains a metric."""

from typing import TYPE_CHECKING

from service.contract import results
from service.contract.formats.bundles import Item, stored
from service.contract.formats.strict_json import finite
from workers.jobs.request import Request, Result, read_pairs
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workers.metrics.learned.fitting import Report
    from workers.metrics.learned.training import Material
    from workers.metrics.learned.training_sets import Captioner

_RECIPE = ("learner", "learning_rate", "beta", "epochs", "seed")
_WHOLE = 1000  # the progress counted for each stage
_STAGES = 5  # features of four sets at most, the training; then a stage for each left-out feature


def train(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """Train a metric. Raises RequestRefused if a photo is in two sets or a captioner was trained on
    it.
    """
    from workers.metrics import postgen
    from workers.metrics.learned import learners, model, training

    asked = request.parameters
    names = asked["features"]
    outcome = training.train(
        _material(request),
        names,
        toolbox.jvm(),
        learners.recipe(**{name: asked[name] for name in _RECIPE}),
        score=postgen.score,
        tokenizer=asked["tokenizer"],
        **toolbox.features(names, asked.get("vectors")),
        report=_staged(progress, _STAGES + len(names)),
    )
    card = results.Model.model_validate(finite(outcome.model.card))
    return Result(lambda path: model.write(path, outcome.model), card)


def _material(request: Request) -> "Material":
    from workers.metrics.learned import ratings, training_sets
    from workers.metrics.learned.training import Material

    asked, digests = request.parameters, request.digests
    items = stored.read_split(request.inputs["dataset"], asked["split"])
    people: Mapping[str, Sequence[str]] = {item.image: item.references for item in items}
    captioners = [_captioner(request, place, items) for place in range(len(asked["captioners"]))]
    inputs = {"dataset": digests["dataset"]}
    for place, each in enumerate(asked["captioners"]):
        inputs[f"outputs {each['name']}"] = digests[f"captions {place}"]
        if each["trained_on"] is not None:
            inputs[f"{each['name']} was trained on"] = digests[f"trained on {place}"]
    rated = None
    if "ratings" in request.inputs:
        rated = ratings.read(request.inputs["ratings"])
        inputs["ratings"] = digests["ratings"]
        if asked["leave_out_rated"]:
            people = training_sets.without(people, rated.images)
    return Material(people, captioners, rated, inputs=inputs)


def _captioner(request: Request, place: int, items: "Sequence[Item]") -> "Captioner":
    from workers.metrics.learned.training_sets import Captioner

    given = request.parameters["captioners"][place]
    places, captions = read_pairs(request.inputs[f"captions {place}"])
    written = {items[at].image: caption for at, caption in zip(places, captions, strict=True)}
    seen = None
    if given["trained_on"] is not None:
        learnt = stored.read_split(request.inputs[f"trained on {place}"], given["trained_on"])
        seen = frozenset(item.image for item in learnt)
    return Captioner(given["name"], written, seen)


def _staged(progress: Progress, stages: int) -> "Report":
    """A Report that adds the stages of a training to one progress, which never decreases."""
    begun: list[str] = []
    furthest = 0

    def report(what: str, done: int, total: int) -> None:
        nonlocal furthest
        if what not in begun:
            begun.append(what)
        stage = begun.index(what) + done / max(total, 1)
        furthest = max(furthest, round(_WHOLE * stage))
        progress(furthest, _WHOLE * stages)

    return report
