"""Runs as logs of Inspect (inspect_ai): an EvalLog in JSON for each run, with its captions as
samples.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prescore.exports.finished_runs import FinishedRun
from prescore.exports.new_files import open_new_folder, write_json
from prescore.models import Caption
from prescore.models.identifiers import rfc3339

LOG_VERSION = 2


def write_inspect_logs(runs: Iterable[FinishedRun], out: Path) -> None:
    """Write a new folder of logs, `RUN.json`, which `inspect view --log-dir` shows."""
    with open_new_folder(out) as folder:
        for run in runs:
            path = folder / f"{run.evaluation.id}.json"
            with path.open("w", encoding="ascii") as stream:
                write_json(stream, build_log(run))


def build_log(run: FinishedRun) -> dict[str, Any]:
    one = run.evaluation
    count = len(run.captions)
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": _build_spec(run),
        "results": {
            "total_samples": count,
            "completed_samples": count,
            "scores": [_build_score(run, name) for name in run.values],
        },
        "stats": {
            "started_at": rfc3339(one.created_at) if one.created_at else "",
            "completed_at": rfc3339(one.finished_at) if one.finished_at else "",
        },
        "samples": list(_build_samples(run)),
    }


def _build_spec(run: FinishedRun) -> dict[str, Any]:
    one = run.evaluation
    return {
        "eval_id": one.id,
        "run_id": one.id,
        "created": rfc3339(one.created_at or datetime.now(UTC)),
        "task": f"captions of {one.dataset}",
        "task_id": str(one.dataset),
        "dataset": {
            "name": str(one.dataset),
            "samples": len(run.captions),
            "sample_ids": [caption.image for caption in run.captions],
        },
        "model": run.model,
        "config": {},
        "packages": {"prescore-client": version("prescore-client")},
        "metadata": {
            "labels": one.labels,
            "note": one.note,
            "verdict": one.verdict,
            "checkpoint": one.checkpoint,
            "columns": one.columns,
            "prompt": one.prompt,
            "dataset_digest": one.dataset.digest,
            "scores_without_value": run.without_value,
        },
    }


def _build_score(run: FinishedRun, name: str) -> dict[str, Any]:
    """One scorer, whose metrics are the score of the run and, where it is a mean, its error."""
    score = run.scores[name]
    facts = {
        "interval": score.interval,
        "confidence_level": 0.95,
        "higher_is_better": score.higher_is_better,
        "stage": score.family,
        "signature": score.signature,
    }
    metrics = {name: {"name": name, "value": run.values[name], "metadata": facts}}
    error = run.compute_standard_error(name)
    if error is not None:
        metrics["stderr"] = {"name": "stderr", "value": error}
    return {"name": name, "scorer": f"prescore/{name}", "metrics": metrics}


def _build_samples(run: FinishedRun) -> Iterator[dict[str, Any]]:
    for caption in run.captions:
        answer = {"role": "assistant", "content": caption.caption, "source": "generate"}
        yield {
            "id": caption.image,
            "epoch": 1,
            "input": caption.image,
            "target": list(run.references.get(caption.image, ())),
            "messages": [],
            "output": {"model": run.model, "choices": [{"message": answer}]},
            "scores": _build_sample_scores(caption),
        }


def _build_sample_scores(caption: Caption) -> dict[str, Any]:
    known = {name: value for name, value in caption.scores.items() if value is not None}
    return {name: {"value": value, "answer": caption.caption} for name, value in known.items()}
