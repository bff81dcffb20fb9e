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
from workers.jobs import analysis, bench, checkpoints, inference, pictures, postgen
from workers.jobs.request import Job, JobRequest, JobResult
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress, ignore_progress

OTHERS: dict[str, Job] = {  # kinds of tasks that are not families of metrics
    "checkpoint": checkpoints.prepare_checkpoint,
    "features": pictures.encode_pictures,
    "picture_digests": pictures.digest_pictures,
    "thumbnails": pictures.shrink_pictures,
    "prefix": inference.compute_prefixes,
    "columns": inference.compute_columns,
    "brought": inference.import_columns,
    "pregen": inference.score_pregen,
    "corpus_perplexity": inference.score_perplexity,
    "bits_per_byte": inference.score_bits_per_byte,
    "forecast": analysis.forecast_scores,
    "captions": inference.decode_captions,
    "references": postgen.prepare_references,
    "tuples": postgen.parse_tuples,
    "embedded_references": postgen.embed_references,
    "reference_sentences": postgen.embed_sentences,
    "training": postgen.store_training_keys,
    "learned": bench.train_nneval,
    "learned_accord": bench.train_accord,
    "probe": bench.run_probe,
    "health": bench.summarize_health,
    "comparison": analysis.compare_systems,
    "strata": bench.cut_strata,
    "study": bench.correlate_strata,
    "order": analysis.draw_order,
    "look": analysis.take_look,
}


def find_job(kind: str) -> Job:
    return postgen.make_scoring_job(kind) if kind in FAMILIES else OTHERS[kind]


def run_job(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = ignore_progress
) -> JobResult:
    """Compute a task and write its result to the request's path `result`.

    The request's `files` has a checked file for each digest in it.
    """
    paths = {digest: Path(path) for digest, path in request["files"].items()}
    given = JobRequest(
        inputs={name: paths[digest] for name, digest in request["inputs"].items()},
        digests=request["inputs"],
        parts=[paths[digest] for digest in request["parts"]],
        parameters=request["parameters"],
    )
    result = find_job(request["kind"])(given, toolbox, progress)
    result.write(Path(request["result"]))
    return result


def answer_request(
    request: Mapping[str, Any], toolbox: Toolbox, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """Compute a task. Returns the warm child's answer, a summary or an error."""
    try:
        summary = run_job(request, toolbox, progress).summary
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
