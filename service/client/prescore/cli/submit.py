"""prescore submit"""

from pathlib import Path
from typing import Annotated

import typer

from prescore import exit_codes
from prescore.cli import console, model_files, options, submissions
from prescore.cli.progress import follow_runs
from prescore.cli.run_summaries import format_summary, list_warnings
from prescore.cli.suggestions import GivenNames
from prescore.models import Evaluation

_WARNINGS_SHOWN = 20


@options.expand_groups
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
    outputs: options.OutputOptions,
    scores: options.ScoreOptions,
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
    judging: options.GateOptions,
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
    transformers or PEFT has saved, a state dict with its map, an ONNX bundle; of a
    folder of such folders each is scored. All files are looked at before the first is
    sent. By default the scores are bleu, rouge_l, cider_d and meteor, and all the
    pre-gen ones for a checkpoint. Without --label, a run has its file's name as a
    label, file=best.safetensors: `list` and `leaderboard` show it.

    Exit 0: submitted, or succeeded. 2: usage, or refused. 3: refused for now, as while
    too many runs are unfinished; with --wait, the run failed, was canceled, gave no
    score or has not ended in time. 4: no answer from the service.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout goes with --wait")
    submissions.check_source(target or (), outputs)
    fields = submissions.build_fields(dataset, gate, scores, judging, run)
    fields |= submissions.build_token_fields(top, entropy=entropy)
    metrics = [*(scores.postgen or ()), *(scores.pregen or ())]
    names = GivenNames(dataset, console.split_names(metrics) or (), gate or ())
    name = dataset.partition("/")[0]
    if bundle is not None and "@" in name:
        raise typer.BadParameter("--bundle goes with a dataset's name, without its version")
    with console.connect_client(connection, names) as client:
        targets = model_files.expand_targets(target or ())
        model_files.check_files(targets)
        files = targets or [outputs.columns or str(outputs.captions)]
        fields |= submissions.build_metric_fields(client, scores)
        if bundle is not None:
            with console.show_upload(bundle.name) as progress:
                client.add_dataset(name, bundle, progress)
        fields["dataset"] = submissions.complete_split(client, dataset)
        requests = submissions.build_requests(fields, files, steps=step_from_name)
        runs = []
        for file, request in zip(files, requests, strict=True):
            source = submissions.build_source(client, file if targets else None, outputs)
            runs.append(submissions.submit_run(client, file, {**request, **source}))
        if wait:
            runs = follow_runs(client, [each.id for each in runs], timeout)
    is_list = targets != (target or []) or len(files) > 1
    format_run = format_summary if wait else lambda each: [each.id]
    console.print_each(runs, format_run, as_json=as_json, is_list=is_list)
    if not (wait or as_json):
        for evaluation in runs:
            _print_warnings(evaluation)
        console.print_note(f"watch: prescore watch {' '.join(each.id for each in runs)}")
    for evaluation in runs if wait else ():
        if not evaluation.ended:
            raise typer.Exit(exit_codes.FAILED)
        console.exit_by_status(evaluation)


def _print_warnings(evaluation: Evaluation) -> None:
    """Print the warnings that are known at submission to stderr."""
    rows = list_warnings(evaluation)
    for code, image, detail in rows[:_WARNINGS_SHOWN]:
        where = f" {image}:" if image else ""
        console.print_note(f"{evaluation.id}: warning: {code}:{where} {detail}")
    if len(rows) > _WARNINGS_SHOWN:
        console.print_note(
            f"{evaluation.id}: {len(rows) - _WARNINGS_SHOWN} more warnings: prescore status"
        )
