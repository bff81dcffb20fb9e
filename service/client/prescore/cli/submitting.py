"""prescore submit"""

from typing import Annotated

import typer

from prescore.cli import asking, console, options, text
from prescore.cli.follow import follow
from prescore.models import Evaluation


@options.spread
def submit(
    target: options.Target,
    dataset: options.Split,
    *,
    scoring: options.Scoring,
    gate: Annotated[
        list[str] | None,
        typer.Option(help="Such as 'cider_d >= 0.4'. `prescore gate` exits by the verdict."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, max=20, help="Keep so many of the model's words for each token."),
    ] = None,
    entropy: Annotated[
        bool, typer.Option("--entropy", help="Keep the entropy at each token.")
    ] = False,
    judging: options.Judging,
    run: options.Run,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the run's end and show its progress.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to --wait; then the run goes on in the service."),
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Score a checkpoint, or captions, on one split of a dataset.

    Prints the run's id at once, or with --wait its scores at the end. A checkpoint
    that the service has is not uploaded again, and no score is computed twice.

        prescore submit best.safetensors --dataset flickr8k/test --wait
        prescore submit best.safetensors --dataset flickr8k@v1/test --postgen none
        prescore submit best.safetensors --dataset coco/val --precision bf16
        prescore submit results.json --dataset coco/val --postgen cider_d,spice
        EV=$(prescore submit best.safetensors --dataset coco/val --label run=7)

    By default the scores are bleu, rouge_l, cider_d and meteor, and all the
    pre-gen ones for a checkpoint.

    Exit 0: submitted, or succeeded. 1: refused. 2: usage. 3: with --wait, the run
    failed, was canceled or has not ended in time. 4: no answer from the service.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout goes with --wait")
    fields = asking.fields(dataset, gate, scoring, judging, run)
    fields |= asking.tokens(top, entropy=entropy)
    with console.connected(connection) as client:
        evaluation = client.submit(**fields, **asking.source(client, target))
        if wait:
            console.say(f"submitted {evaluation.id}")
            evaluation = follow(client, evaluation.id, timeout)
        _show(evaluation, wait=wait, as_json=as_json)
    if wait and evaluation.status != "succeeded":
        raise typer.Exit(console.FAILED)


def _show(evaluation: Evaluation, *, wait: bool, as_json: bool) -> None:
    if as_json:
        console.show_json(evaluation)
    elif wait:
        console.show(text.summary(evaluation))
    else:
        console.show([evaluation.id])
        console.say(f"watch it: prescore watch {evaluation.id}")
