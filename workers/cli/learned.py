"""`prescore learned`: train the learned metric NNEval on captions of people and captioners."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prescore.cli.options import file_to_write
from prescore.files import captions
from service.contract import settings
from service.contract.errors import RequestRefused
from service.contract.formats.digests import digest_of
from service.contract.metrics import families, tokenizers
from service.contract.plan import assets
from service.contract.plan.assets import Places
from workers.cli.console import (
    NAMES,
    AsJson,
    KeyFile,
    Tokens,
    Url,
    errors,
    interruptible,
    names,
    progress,
    say,
    show,
    show_json,
)
from workers.jobs.toolbox import Toolbox
from workers.offline import sources
from workers.progress import Progress

if TYPE_CHECKING:
    from workers.metrics.learned.fitting import Report
    from workers.metrics.learned.learners import Recipe
    from workers.metrics.learned.model import Model
    from workers.metrics.learned.training import Material, Outcome
    from workers.metrics.learned.training_sets import Captioner
    from workers.offline.sources import Source

_AGREEMENT = {
    "people": "people's ratings",
    "held-out images": "who wrote it (2 x area under the curve - 1)",
}

_FEATURES = ",".join(families.usual_features())

learned = typer.Typer(
    help="Train the learned metric (NNEval) on captions of people and of captioners.",
    no_args_is_help=True,
)


class Learner(StrEnum):
    NETWORK = "network"
    LOGISTIC = "logistic"
    BOOSTING = "boosting"


@learned.callback()
def _group() -> None:
    pass


@learned.command()
def train(
    dataset: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET[/SPLIT]", help="Images with references; may be given many times."
        ),
    ],
    outputs: Annotated[
        list[str],
        typer.Option(metavar="NAME=FILE.json", help="A captioner's captions; give three or more."),
    ],
    out: Annotated[Path, file_to_write("The model's file to write (.safetensors).", metavar="F")],
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DATASET/SPLIT", help="The images that a captioner was trained on."
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            metavar="RATED.jsonl",
            help="People's ratings: one half for early stopping, the other for the test.",
        ),
    ] = None,
    leave_out_rated: Annotated[
        bool, typer.Option("--leave-out-rated", help="Do not train on rated photos.")
    ] = False,
    frequencies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET[/SPLIT]", help="Further references for document frequencies."
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{NAMES}; among bleu_1 to bleu_4, cider_d, meteor, spice, wmd.",
            show_default=_FEATURES,
        ),
    ] = None,
    learner: Annotated[
        Learner, typer.Option(help="The paper's network, no hidden layer, or boosted trees.")
    ] = Learner.NETWORK,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Default: 0.001 (in the paper 0.25), for boosting 0.1."),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(min=0.0, help="L2 penalty. Default: 0.01, for boosting 1."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most; for boosting, trees.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    tokenizer: Tokens = tokenizers.USUAL,
    as_json: AsJson = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Train a metric that says how likely a person wrote a caption.

    It learns to tell three references of each image from three captioners' captions, by other
    metrics' scores. Training stops at the best agreement (Kendall's tau c) with one half of
    RATINGS, and is tested on the other half; without ratings, on held-out images. No photo is
    in two of these sets, even under two names: Flickr30k's 123.jpg and Flickr8k's 123_abc.jpg
    are the same photo.

        prescore learned train --dataset coco/test --ratings expert.jsonl --out m.safetensors
            --outputs a=a.json --outputs b=b.json --outputs c=c.json

    Prints the metric, every feature alone, and the metric without each. Exit 0: written.
    2: usage, or refused. 3: it failed.
    """
    from workers.metrics.learned import learners, model

    recipe = learners.recipe(
        learner.value, learning_rate=learning_rate, beta=beta, epochs=epochs, seed=seed
    )
    with errors(), interruptible() as heed, progress("captions") as (bar, task):
        chosen = settings.load()
        find = partial(sources.find, places=Places.of(chosen), url=url, key_file=key_file)
        read = _Reading(
            [find(each) for each in dataset],
            [_named(each, "--outputs") for each in outputs],
            {
                name: find(text)
                for name, text in (_named(each, "--trained-on") for each in trained_on or ())
            },
            [find(each) for each in frequencies or ()],
        )
        material = read.material(ratings, leave_out_rated=leave_out_rated)
        report = partial(_tell, bar, task, heed)
        with closing(Toolbox.of(chosen)) as toolbox:
            outcome = _trained(
                material, names(*features or [_FEATURES]), recipe, tokenizer, toolbox, report, heed
            )
        model.write(out, outcome.model)
        written = model.read(out)
        if as_json:
            show_json(_document(written))
        else:
            show(*_lines(outcome, written, out))


def _tell(bar: Any, task: Any, heed: Progress, what: str, done: int, total: int) -> None:
    heed(done, total)
    bar.update(task, description=what, completed=done, total=total)


def _trained(
    material: "Material",
    features: list[str],
    recipe: "Recipe",
    tokenizer: str,
    toolbox: Toolbox,
    report: "Report",
    heed: Progress,
) -> "Outcome":
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
    )


@dataclass(frozen=True)
class _Reading:
    """The sources of captions: datasets, (name, file) of outputs, captioners' training sets."""

    datasets: "Sequence[Source]"
    outputs: Sequence[tuple[str, str]]
    trained_on: "Mapping[str, Source]"
    frequencies: "Sequence[Source]"

    def material(self, ratings: Path | None, *, leave_out_rated: bool) -> "Material":
        from workers.metrics.learned import ratings as rated_lines
        from workers.metrics.learned import training_sets
        from workers.metrics.learned.training import Material

        rated = None if ratings is None else rated_lines.read(ratings)
        people: dict[str, Sequence[str]] = {}
        for source in self.datasets:
            for item in source.items:
                if item.image in people:
                    raise RequestRefused(f"{item.image!r:.100} is in two of the datasets")
                people[item.image] = item.references
        if leave_out_rated and rated is not None:
            people = training_sets.without(people, rated.images)
        further = [item.references for source in self.frequencies for item in source.items]
        inputs = {_called("dataset", source): source.digest for source in self.datasets}
        inputs |= {_called("frequencies", source): source.digest for source in self.frequencies}
        for name, source in self.trained_on.items():
            inputs[_called(f"{name} was trained on", source)] = source.digest
        inputs |= {f"outputs {name}": digest_of(Path(path)) for name, path in self.outputs}
        if ratings is not None:
            inputs["ratings"] = digest_of(ratings)
        return Material(people, self._captioners(), rated, further, inputs)

    def _captioners(self) -> "list[Captioner]":
        from workers.metrics.learned.training_sets import Captioner

        images = {
            text: source.items[place].image
            for source in self.datasets
            for text, place in source.places.items()
        }
        unknown_names = self.trained_on.keys() - {name for name, _ in self.outputs}
        if unknown_names:
            raise RequestRefused(f"--trained-on {min(unknown_names)}: no --outputs of that name")
        found = []
        for name, path in self.outputs:
            written = {each["image"]: each["caption"] for each in captions.read(Path(path))}
            unknown = [image for image in written if image not in images]
            if unknown:
                raise RequestRefused(
                    f"{path}: expected images of the datasets, found {unknown[0]!r:.100}"
                )
            known = self.trained_on.get(name)
            if known is None:
                say(f"warning: it is not known what {name} was trained on")
            seen = None if known is None else frozenset(item.image for item in known.items)
            by_image = {images[image]: caption for image, caption in written.items()}
            found.append(Captioner(name, by_image, seen))
        return found


def _named(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise RequestRefused(f"{option}: expected NAME=…, found {text!r:.100}")
    return name, value


def _called(what: str, source: "Source") -> str:
    """The name of an input in the model's card, without this machine's folders."""
    return f"{what} {Path(source.name).name}/{source.split}"


def _document(written: "Model") -> dict[str, Any]:
    return {"name": written.name, "digest": written.digest, **written.card}


def _lines(outcome: "Outcome", written: "Model", out: Path) -> list[str]:
    about = written.about
    how = f"stopped by {about['stopped_by']} at epoch {about['best_epoch']} of {about['epochs']}"
    return [
        f"{written.name}  {out}",
        f"trained on {about['training']['captions']} captions, {how}",
        "",
        f"Kendall's tau c with {_AGREEMENT[about['stopped_by']]}",
        f"{'':18} {'stopping':>9} {'test':>9}",
        *(f"{row.what:18} {row.stopping:9.4f} {row.test:9.4f}" for row in outcome.rows),
    ]
