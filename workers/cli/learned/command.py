"""`prescore learned`: train learned metrics, NNEval and accord, on captions and judgements."""

from contextlib import closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli.options import file_to_write
from service.contract import settings
from service.contract.errors import RequestRefused
from service.contract.metrics import families, objectives, tokenizers
from service.contract.metrics.objectives import OBJECTIVES
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
    show,
    show_json,
)
from workers.cli.learned import reading, shown, trained
from workers.cli.learned.reading import Reading, named
from workers.jobs.toolbox import Toolbox
from workers.offline import sources
from workers.progress import Progress

_FEATURES = ",".join(families.usual_features())
_PEOPLE = f"--objective {objectives.PEOPLE}"

learned = typer.Typer(
    help="Train learned metrics (NNEval, accord) on captions and on people's judgements.",
    no_args_is_help=True,
)


class Objective(StrEnum):
    PEOPLE = objectives.PEOPLE
    CONTRAST = objectives.CONTRAST
    JUDGED = objectives.JUDGED


@learned.callback()
def _group() -> None:
    pass


@learned.command()
def train(
    out: Annotated[Path, file_to_write("The model's file to write (.safetensors).", metavar="F")],
    objective: Annotated[
        Objective, typer.Option(help="What is learned; see below.")
    ] = Objective.PEOPLE,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET[/SPLIT]", help="Images with references; may be given many times."
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE.json",
            help=f"A captioner's captions; give three or more. For {_PEOPLE}.",
        ),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Judgements as `prescore judge` reads them. For --objective judged.",
        ),
    ] = None,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DATASET/SPLIT",
            help=f"The images that a captioner was trained on. For {_PEOPLE}.",
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            metavar="RATED.jsonl",
            help="People's ratings: one half for early stopping, the other for the test. For "
            f"{_PEOPLE}.",
        ),
    ] = None,
    leave_out_rated: Annotated[
        bool,
        typer.Option("--leave-out-rated", help=f"Do not train on rated photos. For {_PEOPLE}."),
    ] = False,
    frequencies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET[/SPLIT]",
            help=f"Further references for document frequencies. For {_PEOPLE}.",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{NAMES}; among bleu_1 to bleu_4, cider_d, meteor, spice, wmd. For {_PEOPLE}.",
            show_default=_FEATURES,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help=f"Default: 0.001 (in the paper 0.25). For {_PEOPLE}."),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(min=0.0, help="L2 penalty. Default: 0.01, for accord's weights 0.1."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help=f"Epochs at most. Default: 500. For {_PEOPLE}."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    tokenizer: Tokens = tokenizers.USUAL,
    as_json: AsJson = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Train a metric of captions and references, and write its model.

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
              accord and of CIDEr-D. Without --dataset its words are those of
              the shipped accord (English).

    No photo is both learned from and tested with, even under two names:
    Flickr30k's 123.jpg and Flickr8k's 123_abc.jpg are the same photo.

        prescore learned train --dataset coco/test --ratings expert.jsonl
            --outputs a=a.json --outputs b=b.json --outputs c=c.json
            --out m.safetensors
        prescore learned train --objective contrast --dataset ours/train
            --out m.safetensors
        prescore learned train --objective judged --judgements j.jsonl
            --out m.safetensors

    A model that does not tell good captions from bad ones is not written.
    `prescore assets add learned m.safetensors` registers one; then
    `--metrics accord@DIGEST`, or nneval@DIGEST, asks for it.

    Exit 0: written. 2: usage, or refused. 3: it failed. 130: Ctrl-C.
    """
    from workers.metrics.learned.kinds import KINDS
    from workers.metrics.learned.network import NetworkRecipe

    options = {
        "--outputs": ("captioners", outputs),
        "--trained-on": ("trained_on", trained_on),
        "--ratings": ("stopping", ratings),
        "--leave-out-rated": ("leave_out_rated", leave_out_rated),
        "--frequencies": ("frequencies", frequencies),
        "--features": ("features", features),
        "--learning-rate": ("learning_rate", learning_rate is not None),
        "--epochs": ("epochs", epochs),
        "--judgements": ("judgements", judgements),
    }
    with errors(), interruptible() as heed, progress("captions") as (bar, task):
        reading.check_options(objective.value, options)
        if not dataset and objective is not Objective.JUDGED:
            raise RequestRefused(f"--objective {objective.value}: expected --dataset, found none")
        chosen = settings.load()
        find = partial(sources.find, places=Places.of(chosen), url=url, key_file=key_file)
        datasets = [find(each) for each in dataset or ()]
        report = partial(_tell, bar, task, heed)
        with closing(Toolbox.of(chosen)) as toolbox:
            if objective is Objective.PEOPLE:
                given = Reading(
                    datasets,
                    [named(each, "--outputs") for each in outputs or ()],
                    {
                        name: find(text)
                        for name, text in (named(each, "--trained-on") for each in trained_on or ())
                    },
                    [find(each) for each in frequencies or ()],
                )
                found = trained.by_people(
                    given.material(ratings, leave_out_rated=leave_out_rated),
                    names(*features or [_FEATURES]),
                    NetworkRecipe.with_defaults(
                        learning_rate=learning_rate, beta=beta, epochs=epochs, seed=seed
                    ),
                    tokenizer,
                    toolbox,
                    report,
                    heed,
                )
            else:
                found = trained.by_accord(
                    datasets, judgements, beta, seed, tokenizer, toolbox, report
                )
        kind = KINDS[OBJECTIVES[objective.value].family]
        kind.write(out, found)
        written = kind.read(out)
        if as_json:
            show_json({"name": written.name, "digest": written.digest, **written.card})
        else:
            show(*shown.lines(objective.value, written, out))


def _tell(bar: Any, task: Any, heed: Progress, what: str, done: int, total: int) -> None:
    heed(done, total)
    bar.update(task, description=what, completed=done, total=total)
