"""Runs in the format of Every Eval Ever 0.3: a JSON file for each run, and a JSONL file with a line
for each caption and metric, at their places in the project's store.

Its schemas: https://github.com/evaleval/every_eval_ever
"""

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prescore.exports.finished_runs import FinishedRun
from prescore.exports.new_files import open_new_folder, write_json
from prescore.models import Caption, Score
from prescore.models.identifiers import rfc3339

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"
CONFIDENCE = 0.95


def write_every_eval_ever(runs: Iterable[FinishedRun], out: Path, organization: str) -> None:
    """Write a new folder with `data/DATASET/ORGANIZATION/MODEL/UUID.json`, and the samples beside
    each. The same run has the same UUID in each export.
    """
    with open_new_folder(out) as folder:
        for run in runs:
            _write_run(EvaluationRecord(run, organization, int(time.time())), folder)


@dataclass(frozen=True)
class EvaluationRecord:
    """A run in the words of the schema."""

    run: FinishedRun
    organization: str
    retrieved_at: int  # seconds since 1970

    @property
    def model_id(self) -> str:
        return f"{_make_path_part(self.organization)}/{_make_path_part(self.run.model)}"

    @property
    def id(self) -> str:
        return f"{self.run.evaluation.dataset.name}/{self.model_id}/{self.retrieved_at}"

    @property
    def path(self) -> str:
        """The path in the store, without its ending."""
        digest = hashlib.sha256(self.run.evaluation.id.encode()).digest()
        name = uuid.UUID(bytes=digest[:16], version=4)
        return f"data/{_make_path_part(self.run.evaluation.dataset.name)}/{self.model_id}/{name}"

    def build_aggregate(self) -> dict[str, Any]:
        one = self.run.evaluation
        details = {
            "run": one.id,
            "checkpoint": one.checkpoint,
            "columns": one.columns,
            "verdict": one.verdict,
            "note": one.note,
            "labels": json.dumps(one.labels),
            "scores_without_value": ", ".join(self.run.without_value),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.id,
            **({"evaluation_timestamp": rfc3339(one.finished_at)} if one.finished_at else {}),
            "retrieved_timestamp": str(self.retrieved_at),
            "source_metadata": {
                "source_name": "Prescore",
                "source_type": "evaluation_run",
                "source_organization_name": self.organization,
                "evaluator_relationship": "other",
                "additional_details": {name: text for name, text in details.items() if text},
            },
            "eval_library": {"name": "prescore", "version": version("prescore-client")},
            "model_info": {
                "name": self.run.model,
                "id": self.model_id,
                "additional_details": {
                    "deployment_type": UNKNOWN,
                    "model_availability": UNKNOWN,
                },
            },
            "evaluation_results": [self._build_result(name) for name in self.run.values],
        }

    def _build_result(self, name: str) -> dict[str, Any]:
        dataset, score = self.run.evaluation.dataset, self.run.scores[name]
        return {
            "evaluation_result_id": self._name_result(name),
            "evaluation_name": self._name_evaluation(name),
            "source_data": {
                "dataset_name": dataset.name,
                "source_type": "other",
                "additional_details": {
                    "version": dataset.version,
                    "split": dataset.split,
                    "digest": dataset.digest,
                },
            },
            "metric_config": self._build_metric(name, score),
            "score_details": {
                "score": self.run.values[name],
                "uncertainty": self._build_uncertainty(name, score),
            },
        }

    def _build_metric(self, name: str, score: Score) -> dict[str, Any]:
        metric = self.run.metrics.get(name)
        bounds = metric.range if metric is not None else None
        details = {"signature": score.signature, "stage": score.family}
        if score.higher_is_better is None:
            details["direction"] = "neither direction is better"
        return {
            "metric_id": f"prescore.{name}",
            "metric_name": name,
            "lower_is_better": score.higher_is_better is False,
            **({} if bounds is None else _build_bounds(*bounds)),
            **({"evaluation_description": metric.definition} if metric else {}),
            "additional_details": details,
        }

    def _build_uncertainty(self, name: str, score: Score) -> dict[str, Any]:
        found: dict[str, Any] = {}
        error = self.run.compute_standard_error(name)
        if error is not None:
            found["standard_error"] = {"value": error, "method": "analytic"}
            found["num_samples"] = len(self.run.captions)
        if score.interval is not None:
            lower, upper = score.interval
            found["confidence_interval"] = {
                "lower": lower,
                "upper": upper,
                "confidence_level": CONFIDENCE,
                "method": "bootstrap over images",
            }
        return found

    def build_samples(self) -> Iterator[dict[str, Any]]:
        """A record for each caption and metric that both the caption and the run have."""
        for caption in self.run.captions:
            sample = self._build_sample(caption)
            for name, value in caption.scores.items():
                if value is not None and name in self.run.values:
                    yield {
                        **sample,
                        "evaluation_name": self._name_evaluation(name),
                        "evaluation_result_id": self._name_result(name),
                        # Graded metrics do not say whether a caption is correct; the field is
                        # required, and false is the value of the project's own converters.
                        "evaluation": {"score": value, "is_correct": False},
                    }

    def _build_sample(self, caption: Caption) -> dict[str, Any]:
        references = list(self.run.references.get(caption.image, ()))
        prompt = self.run.evaluation.prompt
        hashed = hashlib.sha256((caption.image + "".join(references)).encode("utf-8", "replace"))
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.id,
            "model_id": self.model_id,
            "sample_id": caption.image,
            "sample_hash": hashed.hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": caption.image, "formatted": prompt, "reference": references},
            "output": {"raw": [caption.caption]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": caption.caption,
                    "extraction_method": "whole output",
                    "is_terminal": True,
                }
            ],
            "metadata": {"is_correct": "not judged: graded metrics"},
        }

    def _name_evaluation(self, metric: str) -> str:
        return f"{self.run.evaluation.dataset}/{metric}"

    def _name_result(self, metric: str) -> str:
        return f"{self.run.evaluation.id}/{metric}"


def _write_run(record: EvaluationRecord, folder: Path) -> None:
    aggregate, samples = folder / f"{record.path}.json", folder / f"{record.path}_samples.jsonl"
    aggregate.parent.mkdir(parents=True, exist_ok=True)
    with samples.open("w", encoding="ascii") as stream:
        written = map(partial(write_json, stream), record.build_samples())
        rows = sum(1 for _ in written)
    document = record.build_aggregate()
    if rows:
        with samples.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        document["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{record.path}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": rows,
        }
    else:
        samples.unlink()
    with aggregate.open("w", encoding="ascii") as stream:
        write_json(stream, document)


def _build_bounds(low: float | None, high: float | None) -> dict[str, Any]:
    return {
        "score_type": "continuous",
        "min_score": "-Infinity" if low is None else low,
        "max_score": "Infinity" if high is None else high,
    }


def _make_path_part(text: str) -> str:
    """A name of a folder on every system, which has nothing but letters, digits, `-`, `_`, `.`."""
    return re.sub("[^A-Za-z0-9._-]+", "-", text).strip("-.")[:100] or UNKNOWN
