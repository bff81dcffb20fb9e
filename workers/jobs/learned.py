"""The tasks that train learned metrics."""

from typing import TYPE_CHECKING

from prescore.models import AccordCard, ModelCard
from service.contract.errors import RequestRefused
from service.contract.formats.bundles import Item, stored
from service.contract.formats.strict_json import finite
from workers.jobs.request import Request, Result, read_pairs
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workers.metrics.learned.fitting import Report
    from workers.metrics.learned.training import Material
    from workers.metrics.learned.training_sets import Captioner

_RECIPE = ("learning_rate", "beta", "epochs", "seed")
_WHOLE = 1000  # the progress counted for each stage
_STAGES = 5  # features of four sets at most, the training; then a stage for each left-out feature
_OF_ACCORD = 7  # stages: tokens, features; of judgements also a test by three metrics


def train(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """Train a model of NNEval. Raises RequestRefused if a photo is in two sets or a captioner was
    trained on it.
    """
    from workers.metrics import postgen
    from workers.metrics.learned import model, training
    from workers.metrics.learned.network import NetworkRecipe

    asked = request.parameters
    names = asked["features"]
    outcome = training.train(
        _material(request),
        names,
        toolbox.jvm(),
        NetworkRecipe.with_defaults(**{name: asked[name] for name in _RECIPE}),
        score=postgen.score,
        tokenizer=asked["tokenizer"],
        **toolbox.features(names, asked.get("vectors")),
        report=_staged(progress, _STAGES + len(names)),
    )
    card = ModelCard.model_validate(finite(outcome.model.card))
    return Result(lambda path: model.write(path, outcome.model), card)


def train_accord(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """Train a model of accord, from judgements if the task has some, else from captions alone."""
    from workers.analysis.learning import contrast, judged
    from workers.analysis.learning.asked import Asked
    from workers.files import judgements
    from workers.metrics import postgen
    from workers.metrics.accord import model
    from workers.metrics.accord.training import Recipe

    wanted, inputs, seed = request.parameters, dict(request.digests), request.parameters["seed"]
    recipe = Recipe(seed=seed) if wanted["beta"] is None else Recipe(wanted["beta"], seed=seed)
    report = _staged(progress, _OF_ACCORD)
    tokenizer = wanted["tokenizer"]
    asked = Asked(toolbox.jvm(), postgen.score, tokenizer, recipe, inputs, report)
    people: dict[str, Sequence[str]] = {}
    for item in [*_items(request), *_further(request)]:
        if item.image in people:
            raise RequestRefused(f"{item.image!r:.100} is in two of the datasets")
        people[item.image] = item.references
    if "judgements" in request.inputs:
        found = judged.learn(people, judgements.read(request.inputs["judgements"]), asked)
    else:
        found = contrast.learn(people, asked)
    card = AccordCard.model_validate(finite(found.card))
    return Result(lambda path: model.write(path, found), card)


def _items(request: Request) -> "Sequence[Item]":
    return stored.read_split(request.inputs["dataset"], request.parameters["split"])


def _further(request: Request) -> "Iterator[Item]":
    """The images of the further datasets."""
    for place, split in enumerate(request.parameters.get("further", ())):
        yield from stored.read_split(request.inputs[f"dataset {place}"], split)


def _material(request: Request) -> "Material":
    from workers.metrics.learned import ratings, training_sets
    from workers.metrics.learned.training import Material

    asked, digests = request.parameters, request.digests
    items = _items(request)
    people: Mapping[str, Sequence[str]] = {item.image: item.references for item in items}
    captioners = [_captioner(request, place, items) for place in range(len(asked["captioners"]))]
    inputs = {name: digest for name, digest in digests.items() if name.startswith("dataset")}
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
    further = [item.references for item in _further(request)]
    return Material(people, captioners, rated, further, inputs)


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
