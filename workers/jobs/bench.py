"""Jobs of research tools (`workers/bench`): probes, studies, training of metrics."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from prescore.models import AccordCard, ModelCard
from prescore.models.metrics import MetricHealth
from prescore.models.probes import ProbeRow
from service.contract.errors import RequestRefused
from service.contract.formats.bundles import BundleItem, files
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics import catalogue
from service.contract.metrics.families import find_family_name
from service.contract.plan import planning
from service.contract.plan.planning import STUDIED_FAMILIES
from service.contract.results import HealthSummary, ProbeSummary
from workers.jobs.request import JobRequest, JobResult, make_summary_result, read_pairs, write_json
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workers.bench.learned.nneval_fitting import Report
    from workers.bench.learned.nneval_training import NNEvalMaterial
    from workers.bench.learned.training_sets import CaptionerOutputs
    from workers.bench.probing.inputs import ProbeMaterial
    from workers.bench.probing.scoring import Scorer
    from workers.bench.study.strata import Rescore
    from workers.metrics.ngrams import Ints


def run_probe(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    from workers.bench.probing import probes
    from workers.bench.probing.inputs import ProbeArguments

    asked = request.parameters
    rows = probes.run_probe(
        asked["probe"],
        _probe_material(request, toolbox),
        _scorer(request, toolbox),
        ProbeArguments(**asked["options"]),
        progress=progress,
    )
    return make_summary_result(
        ProbeSummary(rows=[ProbeRow(**replace_infinite(asdict(row))) for row in rows])
    )


def summarize_health(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.bench.probing.health import derive_health
    from workers.bench.probing.scoring import ProbeTableRow

    tables = [
        ProbeSummary.model_validate_json(path.read_bytes()) for path in request.inputs.values()
    ]
    rows = [ProbeTableRow(**row.model_dump()) for table in tables for row in table.rows]
    found = {
        name: MetricHealth(**replace_infinite(asdict(each)))
        for name, each in derive_health(rows).items()
    }
    return make_summary_result(HealthSummary(health=found))


def _probe_material(request: JobRequest, toolbox: Toolbox) -> "ProbeMaterial":
    from workers.bench.probing import inputs

    asked = request.parameters
    items = files.read_captions_split(request.inputs["dataset"], asked["split"])
    outputs, training = None, None
    if "captions" in request.inputs:
        _, outputs = read_pairs(request.inputs["captions"])
    if asked["training"] is not None:
        learned = files.read_captions_split(request.inputs["dataset"], asked["training"])
        training = [caption for item in learned for caption in item.references]
    people = [item.references for item in items]
    return inputs.prepare_material(
        people, asked["tokenizer"], toolbox.jvm(), outputs=outputs, training=training
    )


def _scorer(request: JobRequest, toolbox: Toolbox) -> "Scorer":
    from workers.bench.probing.scoring import make_scorer

    asked = request.parameters
    tools = {
        task: _tools(task, request, toolbox)
        for task in catalogue.list_metric_tasks(asked["metrics"])
    }
    return make_scorer(asked["metrics"], toolbox.jvm(), tools)


def _tools(task: str, request: JobRequest, toolbox: Toolbox) -> dict[str, Any]:
    """Bring a metric's tools; a model that its name tells is an input of the probe."""
    own, model = request.parameters["own"].get(task, {}), planning.name_model_input(task)
    if model in request.inputs:
        path, digest = request.inputs[model], request.digests[model]
        return toolbox.named(find_family_name(task), digest, path, own)
    return toolbox.bring(task, own)


_RECIPE = ("learning_rate", "beta", "epochs", "seed")
_WHOLE = 1000  # the progress counted for each stage
_STAGES = 5  # features of four sets at most, the training; then a stage for each left-out feature
_OF_ACCORD = 7  # stages: tokens, features; of judgements also a test by three metrics


def train_nneval(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Train a model of NNEval. Raises RequestRefused if a photo is in two sets or a captioner was
    trained on it.
    """
    from workers.bench.learned import nneval_training
    from workers.bench.learned.nneval_fitting import NetworkRecipe
    from workers.metrics import postgen
    from workers.metrics.learned import nneval

    asked = request.parameters
    names = asked["features"]
    outcome = nneval_training.train_nneval(
        _nneval_material(request),
        names,
        toolbox.jvm(),
        NetworkRecipe.with_defaults(**{name: asked[name] for name in _RECIPE}),
        score=postgen.score_family,
        tokenizer=asked["tokenizer"],
        **toolbox.features(names, asked.get("vectors")),
        report=_staged(progress, _STAGES + len(names)),
    )
    card = ModelCard.model_validate(replace_infinite(outcome.model.card))
    return JobResult(lambda path: nneval.write_nneval(path, outcome.model), card)


def train_accord(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Train a model of accord, from judgements if the task has some, else from captions alone."""
    from workers.bench import judgements
    from workers.bench.learned import accord_judgements, accord_training
    from workers.bench.learned.accord_training import AccordRecipe, AccordTrainingOptions
    from workers.metrics import postgen
    from workers.metrics.accord import model

    wanted, inputs, seed = request.parameters, dict(request.digests), request.parameters["seed"]
    recipe = (
        AccordRecipe(seed=seed)
        if wanted["beta"] is None
        else AccordRecipe(wanted["beta"], seed=seed)
    )
    report = _staged(progress, _OF_ACCORD)
    tokenizer = wanted["tokenizer"]
    asked = AccordTrainingOptions(
        toolbox.jvm(), postgen.score_family, tokenizer, recipe, inputs, report
    )
    people: dict[str, Sequence[str]] = {}
    for item in [*_items(request), *_further(request)]:
        if item.image in people:
            raise RequestRefused(f"{item.image!r:.100} is in two of the datasets")
        people[item.image] = item.references
    if "judgements" in request.inputs:
        found = accord_judgements.learn_from_judgements(
            people, judgements.read_judgements(request.inputs["judgements"]), asked
        )
    else:
        found = accord_training.learn_from_captions(people, asked)
    card = AccordCard.model_validate(replace_infinite(found.card))
    return JobResult(lambda path: model.write_accord(path, found), card)


def _items(request: JobRequest) -> "Sequence[BundleItem]":
    return files.read_captions_split(request.inputs["dataset"], request.parameters["split"])


def _further(request: JobRequest) -> "Iterator[BundleItem]":
    """The images of the further datasets."""
    for place, split in enumerate(request.parameters.get("further", ())):
        yield from files.read_captions_split(request.inputs[f"dataset {place}"], split)


def _nneval_material(request: JobRequest) -> "NNEvalMaterial":
    from workers.bench import judgements
    from workers.bench.learned import training_sets
    from workers.bench.learned.nneval_training import NNEvalMaterial

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
        rated = judgements.read_image_ratings(request.inputs["ratings"])
        inputs["ratings"] = digests["ratings"]
        if asked["leave_out_rated"]:
            images = [str(line.image) for line in rated]
            people = training_sets.leave_out_photos(people, images)
    further = [item.references for item in _further(request)]
    return NNEvalMaterial(people, captioners, rated, further, inputs)


def _captioner(
    request: JobRequest, place: int, items: "Sequence[BundleItem]"
) -> "CaptionerOutputs":
    from workers.bench.learned.training_sets import CaptionerOutputs

    given = request.parameters["captioners"][place]
    places, captions = read_pairs(request.inputs[f"captions {place}"])
    written = {items[at].image: caption for at, caption in zip(places, captions, strict=True)}
    seen = None
    if given["trained_on"] is not None:
        learnt = files.read_captions_split(
            request.inputs[f"trained on {place}"], given["trained_on"]
        )
        seen = frozenset(item.image for item in learnt)
    return CaptionerOutputs(given["name"], written, seen)


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


def cut_strata(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.bench.study import rows as tensors
    from workers.bench.study import strata
    from workers.inference import columns
    from workers.metrics import postgen

    inputs = request.inputs
    found, _ = columns.read_columns(inputs["columns"])
    scores = {
        family: postgen.read_scores(path)
        for family, path in inputs.items()
        if find_family_name(family) in STUDIED_FAMILIES
    }
    rescore = _rescoring(request, toolbox) if request.parameters["idf"] == "stratum" else None
    rows = strata.make_stratum_rows(strata.StratifiedModel(found, scores, rescore), "", "")
    return JobResult(lambda path: tensors.write_rows_file(path, rows))


def _rescoring(request: JobRequest, toolbox: Toolbox) -> "Rescore":
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


def correlate_strata(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    from workers.bench.study import correlations
    from workers.bench.study import rows as tensors
    from workers.bench.study.rows import join_rows

    dataset, parts = request.parameters["dataset"], []
    # Not by name: sums in another order have other last bits, and the ids of runs are drawn.
    for name in sorted(request.inputs, key=lambda name: request.digests[name]):
        own = tensors.read_rows_file(request.inputs[name])
        parts.append(replace(own, datasets=[dataset] * len(own), models=[name] * len(own)))
    found = correlations.correlate_scores(join_rows(parts))
    return JobResult(lambda path: write_json(path, found))
