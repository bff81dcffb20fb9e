"""One function for each kind of task, from files of inputs to a result file and a summary.

The warm child calls `answer`. Nothing here uses databases, queues or object stores: the parent
process fetches the inputs and stores the result.
"""

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.contract.errors import PrescoreError
from service.contract.metrics.families import FAMILIES
from workers.jobs import (
    checkpoints,
    comparisons,
    estimate,
    forecasts,
    inference,
    learned,
    pictures,
    postgen,
    probes,
    study,
)
from workers.jobs.request import Job, Request, Result
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress, ignore_progress

OTHERS: dict[str, Job] = {  # kinds of tasks that are not families of metrics
    "checkpoint": checkpoints.prepare,
    "features": pictures.encode,
    "picture_digests": pictures.digest,
    "thumbnails": pictures.shrink,
    "prefix": inference.prefix,
    "columns": inference.columns,
    "brought": inference.brought,
    "pregen": inference.pregen,
    "corpus_perplexity": inference.corpus_perplexity,
    "forecast": forecasts.forecast,
    "captions": inference.captions,
    "references": postgen.prepare_references,
    "tuples": postgen.parse_tuples,
    "embedded_references": postgen.embed_references,
    "reference_sentences": postgen.embed_sentences,
    "training": postgen.keep_training,
    "learned": learned.train,
    "learned_accord": learned.train_accord,
    "probe": probes.probe,
    "health": probes.health,
    "comparison": comparisons.compare,
    "strata": study.cut_strata,
    "study": study.correlate,
    "order": estimate.draw,
    "look": estimate.look,
}


def job(kind: str) -> Job:
    return postgen.score(kind) if kind in FAMILIES else OTHERS[kind]


def run(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = ignore_progress
) -> Result:
    """Compute a task and write its result to the request's path `result`.

    The request's `files` has a checked file for each digest in it.
    """
    paths = {digest: Path(path) for digest, path in request["files"].items()}
    given = Request(
        inputs={name: paths[digest] for name, digest in request["inputs"].items()},
        digests=request["inputs"],
        parts=[paths[digest] for digest in request["parts"]],
        parameters=request["parameters"],
    )
    result = job(request["kind"])(given, toolbox, progress)
    result.write(Path(request["result"]))
    return result


def answer(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """Compute a task. Returns the warm child's answer, a summary or an error."""
    try:
        summary = run(request, toolbox, progress).summary
        return {"summary": {} if summary is None else summary.model_dump()}
    except MemoryError:
        return _refused("out_of_memory", "the task needs more memory")
    except PrescoreError as error:
        return _refused(error.code, error.detail)
    except Exception as error:  # noqa: BLE001  an error in our code fails the run, not the worker
        traceback.print_exc()
        return _refused("internal", f"{type(error).__name__}: {error}"[:500])


def _refused(code: str, detail: str) -> dict[str, Any]:
    return {"error": {"code": code, "detail": detail}}
