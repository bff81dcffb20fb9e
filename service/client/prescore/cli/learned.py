"""prescore learned list, show, train"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import console, local_datasets, options, text
from prescore.cli.progress import follow_computation
from prescore.cli.run_ids import is_run_id
from prescore.cli.suggestions import GivenNames
from prescore.client import requests
from prescore.files import captions
from prescore.models import AccordCard, Learned, ModelCard

learned = typer.Typer(
    help="Train learned metrics (NNEval, accord) on captions and on people's judgements.",
    no_args_is_help=True,
)


@learned.command(name="list")
@options.expand_groups
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
    with console.connect_client(connection, GivenNames(dataset or "")) as client:
        trainings = list(islice(client.trainings(dataset=dataset), limit))
    if as_json or trainings:
        console.print_answers(trainings, _format_list, as_json=as_json)
    else:
        console.print_note("nothing has been trained")


@learned.command()
@options.expand_groups
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
    with console.connect_client(connection) as client:
        training = client.training(id_)
        if out is not None:
            client.fetch_model(id_, out)
    _print_training(training, as_json=as_json)


@learned.command()
@options.expand_groups
def train(
    dataset: options.LocalWholeSplit,
    *,
    out: Annotated[
        Path | None, options.file_to_write("Write the model (.safetensors) too.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="people, contrast or judged; see below. Default: people."),
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET/SPLIT", help="A split whose references count too."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE|EV",
            help="A captioner's captions, or the run that has them; three or more. For people.",
        ),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="As `prescore judge` reads them. For judged."),
    ] = None,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DATASET/SPLIT",
            help="The split that a captioner was trained on. For people.",
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            metavar="RATED.jsonl",
            help="People's ratings: one half ends the training, the other tests. For people.",
        ),
    ] = None,
    leave_out_rated: Annotated[
        bool, typer.Option("--leave-out-rated", help="Do not train on rated photos. For people.")
    ] = False,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Metrics that it is made of, separated by commas or given one by one. For people."
        ),
    ] = None,
    tokenizer: options.WordTokenizer = None,
    learning_rate: Annotated[
        float | None, typer.Option(min=0.0, help="Of the network. For people.")
    ] = None,
    beta: Annotated[float | None, typer.Option(min=0.0, help="The L2 penalty.")] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="At most so many. Default: 500. For people.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all random numbers.")] = None,
    timeout: options.Timeout = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Train a metric of captions and references, and wait.

    people    a model of NNEval: who wrote a caption. It learns to tell three
              references of each image from three captioners' captions, by
              other metrics' scores. Training stops at the best agreement
              (Kendall's tau c) with one half of RATINGS, and is tested on the
              other half; without ratings, on held-out images.
    contrast  a model of accord, from references alone: people's captions
              above wrong ones that are made of them. English is learned in
              most detail, other languages too.
    judged    a model of accord, from judgements: what people prefer above
              what they do not. A quarter of the photos is not learned from;
              agreement with people there is told beside that of the shipped
              accord and of CIDEr-D.

    No photo is both learned from and tested with, even under two names:
    Flickr30k's 123.jpg and Flickr8k's 123_abc.jpg are the same photo. Where
    DATASET is a folder or a tar, or no service is named and none answers, the
    service runs in this process (--here).

        prescore learned train coco/train --epochs 100
            --outputs a=ev_2f9c --outputs b=ev_81d0 --outputs c=results.json
        prescore learned train ours/train --objective contrast --out m.safetensors
        prescore learned train ours/train --objective judged
            --judgements judged.jsonl

    Then name the metric in requests, as in `prescore submit --postgen accord@...`.
    `prescore assets add learned m.safetensors` registers a written model. A model that
    does not tell good captions from bad ones is not written.

    Exit 0: trained. 2: usage, or refused. 3: it failed or has not ended in time.
    4: no answer from the service. 130: Ctrl-C.
    """
    choices: dict[str, Any] = {
        "objective": objective,
        "leave_out_rated": leave_out_rated or None,
        "features": console.split_names(features),
        "tokenizer": tokenizer,
        "learning_rate": learning_rate,
        "beta": beta,
        "epochs": epochs,
        "seed": seed,
    }
    given: Any = {name: value for name, value in choices.items() if value is not None}
    connection = local_datasets.choose_connection(connection, dataset)
    name = local_datasets.find_name(connection, dataset)
    names = GivenNames(name, choices["features"] or ())
    with console.connect_client(connection, names) as client:
        if judgements is not None:
            given["judgements"] = captions.read_judgements(judgements)
        if ratings is not None:
            lines = captions.read_judgements(ratings)
            given["stopping"] = requests.split_judgements(lines)["rated"]
        provide = partial(local_datasets.provide_split, client, connection, whole=False)
        if further is not None:
            given["further"] = [provide(each) for each in further]
        captioners = _build_captioners(outputs, trained_on, provide)
        split = provide(dataset)
        train = partial(client.train_learned, split, captioners, timeout=timeout, **given)
        training = follow_computation(train)
        if out is not None and training.status == "succeeded":
            client.fetch_model(training.id, out)
    _print_training(training, as_json=as_json)


def _build_captioners(
    outputs: list[str] | None, trained_on: list[str] | None, provide: Callable[[str], str]
) -> list[dict[str, Any]] | None:
    if outputs is None:
        if trained_on:
            raise typer.BadParameter("--trained-on: expected --outputs of that name, found none")
        return None
    captioners = {each["name"]: each for each in map(_parse_captioner, outputs)}
    for given in trained_on or ():
        name, equals, split = given.partition("=")
        if not equals or name not in captioners:
            raise typer.BadParameter(
                f"--trained-on: expected NAME=DATASET/SPLIT, with a name of --outputs, found "
                f"{given!r:.100}"
            )
        captioners[name]["trained_on"] = provide(split)
    return list(captioners.values())


def _parse_captioner(given: str) -> dict[str, Any]:
    name, equals, target = given.partition("=")
    if not (name and equals and target):
        raise typer.BadParameter(f"--outputs: expected NAME=FILE or NAME=EV, found {given!r:.100}")
    if is_run_id(target):
        return {"name": name, "evaluation": target}
    return {"name": name, "captions": captions.read_captions(Path(target))}


def _print_training(training: Learned, *, as_json: bool) -> None:
    console.print_answer(training, _format_training, as_json=as_json)
    console.exit_by_status(training)


def _format_list(trainings: Sequence[Learned]) -> list[str]:
    heading = ("training", "status", "on", "begun", "metric")
    return text.align_rows([heading, *map(_format_row, trainings)])


def _format_row(training: Learned) -> tuple[str, ...]:
    when = text.format_moment(training.created_at)
    return training.id, training.status, str(training.dataset), when, training.metric or ""


def _format_training(training: Learned) -> list[str]:
    lines = [*text.align_rows([_format_row(training)]), *text.format_problems(training)]
    if isinstance(training.model, AccordCard):
        lines += _format_accord(training.model)
    elif training.model is not None:
        lines += _format_nneval(training.model)
    return lines


def _format_nneval(model: ModelCard) -> list[str]:
    facts = [
        ("epochs", f"{model.epochs}, the best is {model.best_epoch}"),
        ("stopped by", model.stopped_by),
        ("features", ", ".join(model.features)),
    ]
    agreement = [
        (name, *("-" if tau is None else f"{tau:.3f}" for tau in taus))
        for name, taus in model.kendall_c.items()
    ]
    heading = ("Kendall's tau c", "when stopping", "on test data")
    return [*text.align_rows(facts), *text.align_rows([heading, *agreement])]


def _format_accord(model: AccordCard) -> list[str]:
    judged, contrasts = model.training.judged, model.training.contrasts
    facts = [("objective", model.objective), ("images", f"{model.training.images:,}")]
    if judged is not None:
        facts.append(("preferences", f"{judged.pairs:,}"))
    lines = text.align_rows(facts)
    if model.right:
        rows = [
            (kind, f"{contrasts.get(kind, 0):,}", f"{share:.3f}")
            for kind, share in model.right.items()
        ]
        lines += text.align_rows([("of those learned from", "contrasts", "right"), *rows])
    if model.agreement is not None:
        rows = [
            (
                name,
                _format_figure(row.kendall_c, row.kendall_c_interval),
                _format_figure(row.right, row.right_interval),
            )
            for name, row in model.agreement.metrics.items()
        ]
        lines += text.align_rows([("on test photos", "tau c with ratings", "pairs right"), *rows])
    return lines


def _format_figure(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
