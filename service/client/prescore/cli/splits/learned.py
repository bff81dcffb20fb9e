"""prescore learned list, show, compute"""

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import asking, console, options, targets, text
from prescore.cli.follow import computed
from prescore.cli.nearly import Meant
from prescore.files import captions
from prescore.models import Learned, ModelCard, Tokenizer

learned = typer.Typer(
    help="Train the learned metric (NNEval) on captions of people and of captioners.",
    no_args_is_help=True,
)


@learned.command(name="list")
@options.spread
def list_(
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="NAME or NAME@VERSION.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 20,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """List the trainings that the service did, the latest first.

    prescore learned list
    prescore learned list flickr8k --json | jq -r '.[0].metric'
    """
    with console.connected(connection, Meant(dataset or "")) as client:
        found = list(islice(client.trainings(dataset=dataset), limit))
    if as_json:
        console.show_json(*found, many=True)
    elif not found:
        console.say("nothing has been trained")
    else:
        heading = ("training", "status", "on", "begun", "metric")
        console.show(text.aligned([heading, *map(_row, found)]))


@learned.command()
@options.spread
def show(
    id_: Annotated[str, typer.Argument(metavar="LN", help="The training's id, ln_...")],
    *,
    out: Annotated[
        Path | None, options.file_to_write("Fetch the model (.safetensors) too.")
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show a training: the metric's name in requests, and how far it agrees with people.

        prescore learned show ln_81c2
        prescore learned show ln_81c2 --out nneval.safetensors

    Exit 0: it is queued, running or has succeeded. 3: it failed or was canceled.
    """
    with console.connected(connection) as client:
        found = client.training(id_)
        if out is not None:
            client.fetch_model(id_, out)
    _end(found, as_json=as_json)


@learned.command()
@options.spread
def compute(
    split: options.WholeSplit,
    *,
    outputs: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=FILE|EV",
            help="A captioner's captions, or the run that has them; give three or more.",
        ),
    ],
    features: Annotated[
        list[str] | None,
        typer.Option(help="Metrics that it is made of, separated by commas or given one by one."),
    ] = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="How captions and references are split into words.")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="network, logistic or boosting. Default: network.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="At most so many. Default: 500.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all random numbers.")] = None,
    timeout: options.Timeout = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Let the service train the learned metric on a split, and wait.

    `prescore learned train` does the same here, without a service.

        prescore learned compute coco/train --epochs 100
            --outputs a=ev_2f9c --outputs b=ev_81d0 --outputs c=results.json

    Then name the metric in requests, as in `prescore submit --postgen nneval@...`.

    Exit 0: trained. 2: usage, or refused. 3: it failed or has not ended in time.
    4: no answer from the service. 130: Ctrl-C.
    """
    asked: dict[str, Any] = {
        "features": console.names(features),
        "tokenizer": tokenizer,
        "learner": learner,
        "epochs": epochs,
        "seed": seed,
    }
    given: Any = {name: value for name, value in asked.items() if value is not None}
    with console.connected(connection, Meant(split, asked["features"] or ())) as client:
        captioners = [_captioner(each) for each in outputs]
        split = asking.whole(client, split)
        train = partial(client.train_learned, split, captioners, timeout=timeout, **given)
        found = computed(train)
    _end(found, as_json=as_json)


def _captioner(given: str) -> dict[str, Any]:
    name, equals, target = given.partition("=")
    if not (name and equals and target):
        raise typer.BadParameter(f"--outputs: expected NAME=FILE or NAME=EV, found {given!r:.100}")
    if targets.is_run(target):
        return {"name": name, "evaluation": target}
    return {"name": name, "captions": captions.read(Path(target))}


def _end(found: Learned, *, as_json: bool) -> None:
    if as_json:
        console.show_json(found)
    else:
        console.show(_lines(found))
    console.exit_as(found)


def _row(found: Learned) -> tuple[str, ...]:
    when = text.moment(found.created_at)
    return found.id, found.status, str(found.dataset), when, found.metric or ""


def _lines(found: Learned) -> list[str]:
    lines = text.aligned([_row(found)])
    if found.error is not None:
        lines += text.aligned([("error", found.error.detail or found.error.title)])
    lines += text.aligned([(one.code, one.detail) for one in found.warnings])
    return [*lines, *(_card(found.model) if found.model is not None else [])]


def _card(model: ModelCard) -> list[str]:
    facts = [
        ("learner", model.learner),
        ("epochs", f"{model.epochs}, the best is {model.best_epoch}"),
        ("stopped by", model.stopped_by),
        ("features", ", ".join(model.features)),
    ]
    agreement = [
        (name, *("-" if tau is None else f"{tau:.3f}" for tau in taus))
        for name, taus in model.kendall_c.items()
    ]
    heading = ("Kendall's tau c", "when stopping", "on test data")
    return [*text.aligned(facts), *text.aligned([heading, *agreement])]
