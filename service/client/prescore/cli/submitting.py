"""prescore submit"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prescore import exit_codes
from prescore.cli import asking, console, options, targets, text
from prescore.cli.follow import follow_all
from prescore.cli.nearly import Meant
from prescore.models import Evaluation

_WARNINGS_SHOWN = 20


@options.spread
def submit(
    target: options.Targets = None,
    *,
    dataset: options.Split,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Add this dataset bundle, a folder or a tar, as the dataset first; equal content "
            "makes no new version."
        ),
    ] = None,
    brought: options.Brought,
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
    run: options.RunOptions,
    step_from_name: options.StepFromName = False,
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
    """Score checkpoints, captions or columns on one split of a dataset.

    Prints each run's id at once, or with --wait its scores at the end. A checkpoint
    that the service has is not uploaded again, and no score is computed twice.

        prescore submit best.safetensors --dataset flickr8k/test --wait
        prescore submit best.safetensors --dataset flickr8k@v1/test --postgen none
        prescore submit best.safetensors --dataset coco/val --precision bf16
        prescore submit results.json --dataset coco/val --metrics cider_d,spice
        prescore submit --columns model.columns.safetensors --dataset coco/val
        prescore submit --captions results.json --dataset coco/val
        prescore submit runs/*.safetensors --dataset coco/val --step-from-name
        prescore submit runs/ --dataset coco/val --wait --json > runs.json
        prescore submit best.safetensors --dataset mine/test --bundle mine/ --wait
        EV=$(prescore submit best.safetensors --dataset coco/val --label run=7)

    Of a folder all .safetensors files are scored, unless it is one model: what
    transformers has saved, a state dict with its map, an ONNX bundle; of a folder of
    such folders each is scored. All files are looked at before the first is sent. By
    default the scores are bleu, rouge_l, cider_d and meteor, and all the pre-gen ones
    for a checkpoint. Without --label, a run has its file's name as a label,
    file=best.safetensors: `list` and `leaderboard` show it.

    Exit 0: submitted, or succeeded. 2: usage, or refused. 3: refused for now, as while
    too many runs are unfinished; with --wait, the run failed, was canceled, gave no
    score or has not ended in time. 4: no answer from the service.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout goes with --wait")
    asking.check_one(target or (), brought)
    fields = asking.fields(dataset, gate, scoring, judging, run)
    fields |= asking.tokens(top, entropy=entropy)
    metrics = [*(scoring.postgen or ()), *(scoring.pregen or ())]
    meant = Meant(dataset, console.names(metrics) or (), gate or ())
    name = dataset.partition("/")[0]
    if bundle is not None and "@" in name:
        raise typer.BadParameter("--bundle goes with a dataset's name, without its version")
    with console.connected(connection, meant) as client:
        found = targets.expanded(target) if target else [brought.columns or str(brought.captions)]
        targets.check(found if target else ())
        fields |= asking.named_metrics(client, scoring)
        if bundle is not None:
            with console.upload_shown(bundle.name) as progress:
                client.add_dataset(name, bundle, progress)
        fields["dataset"] = asking.whole(client, dataset)
        requests = asking.several(fields, found, steps=step_from_name)
        sources = (
            asking.source(client, one, brought.units) if target else asking.brought(client, brought)
            for one in found
        )
        begun = [
            asking.begun(client, one, {**fields, **source})
            for one, fields, source in zip(found, requests, sources, strict=True)
        ]
        if wait:
            begun = follow_all(client, [one.id for one in begun], timeout)
        _show(begun, wait=wait, as_json=as_json, many=found != (target or found) or len(found) > 1)
    for one in begun if wait else ():
        if not one.ended:
            raise typer.Exit(exit_codes.FAILED)
        console.exit_as(one)


def _show(evaluations: Sequence[Evaluation], *, wait: bool, as_json: bool, many: bool) -> None:
    if as_json:
        console.show_json(*evaluations, many=many)
        return
    for evaluation in evaluations:
        console.show(text.summary(evaluation) if wait else [evaluation.id])
    if not wait:
        for evaluation in evaluations:
            _say_warnings(evaluation)
        console.say(f"watch: prescore watch {' '.join(one.id for one in evaluations)}")


def _say_warnings(evaluation: Evaluation) -> None:
    """Print the warnings that are known at submission to stderr."""
    rows = text.warning_rows(evaluation)
    for code, image, detail in rows[:_WARNINGS_SHOWN]:
        where = f" {image}:" if image else ""
        console.say(f"{evaluation.id}: warning: {code}:{where} {detail}")
    if len(rows) > _WARNINGS_SHOWN:
        console.say(
            f"{evaluation.id}: {len(rows) - _WARNINGS_SHOWN} more warnings: prescore status"
        )
