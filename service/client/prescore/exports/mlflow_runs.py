"""Runs in a store of MLflow: metrics by step, facts as parameters and tags."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from prescore.errors import InvalidArgument
from prescore.exports.finished_runs import FinishedRun
from prescore.exports.new_files import open_new_folder
from prescore.exports.trainings import Training, group_trainings, import_peer, list_numbers
from prescore.plain_text import quoted

EXTRA = "mlflow"
EXPERIMENT = "prescore"
MOST_METRICS = 1000  # of one call, as MLflow's REST API has it
MOST_FACTS = 100
PARAMETER_CHARACTERS = 6000
KEY_CHARACTERS = 200
T = TypeVar("T")


def write_mlflow_runs(runs: Iterable[FinishedRun], out: Path | None) -> None:
    """Write a new folder with `mlflow.db`, or to the store that MLflow's own settings name."""
    mlflow = import_peer("mlflow", EXTRA)
    groups = group_trainings(runs)
    if out is None:
        _write_groups(mlflow.MlflowClient(), None, groups)
        return
    with open_new_folder(out) as folder:
        client = mlflow.MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
        _write_groups(client, (out.absolute() / "artifacts").as_uri(), groups)


def _write_groups(client: Any, artifacts: str | None, groups: Iterable[Training]) -> None:
    with _translate_peer_errors():
        known = client.get_experiment_by_name(EXPERIMENT)
        experiment = (
            client.create_experiment(EXPERIMENT, artifacts)
            if known is None
            else known.experiment_id
        )
        for group in groups:
            _write_group(client, experiment, group)


def _write_group(client: Any, experiment: str, group: Training) -> None:
    """Write a run; one that is interrupted is deleted."""
    begun = _read_milliseconds(group.first.evaluation.created_at)
    run = client.create_run(experiment, start_time=begun, run_name=group.name).info.run_id
    try:
        _log_numbers(client, run, group)
        _log_facts(client, run, group)
        ended = _read_milliseconds(group.last.evaluation.finished_at)
        client.set_terminated(run, "FINISHED", ended)
    except BaseException:
        client.delete_run(run)
        raise


def _log_numbers(client: Any, run: str, group: Training) -> None:
    entities = import_peer("mlflow.entities", EXTRA)
    metrics = [
        entities.Metric(
            _make_key(name), value, _read_milliseconds(one.evaluation.finished_at), step
        )
        for step, one in group.steps
        for name, value in list_numbers(one).items()
    ]
    for batch in _split_batches(metrics, MOST_METRICS):
        client.log_batch(run, metrics=batch)


def _log_facts(client: Any, run: str, group: Training) -> None:
    """Parameters: facts of all its evaluations. Tags: the evaluation of each step."""
    entities = import_peer("mlflow.entities", EXTRA)
    facts: dict[str, str] = {}
    for name, text in group.find_common_facts().items():
        key = _make_key(name)
        while key in facts:
            key = f"{key}_"
        facts[key] = text[:PARAMETER_CHARACTERS]
    parameters = [entities.Param(key, text) for key, text in facts.items()]
    tags = [
        entities.RunTag(f"prescore.evaluation.{step}", one.evaluation.id)
        for step, one in group.steps
    ]
    for batch in _split_batches(parameters, MOST_FACTS):
        client.log_batch(run, params=batch)
    for batch in _split_batches(tags, MOST_FACTS):
        client.log_batch(run, tags=batch)


def _make_key(name: str) -> str:
    """A name that MLflow takes: of letters, digits, and some marks, and no path to elsewhere."""
    key = re.sub(r"[^\w .:/-]", "_", name)[:KEY_CHARACTERS]
    return key if posixpath.normpath(key) == key else key.replace("/", "_")


def _split_batches(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    return (items[at : at + most] for at in range(0, len(items), most))


def _read_milliseconds(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp() * 1000)


@contextmanager
def _translate_peer_errors() -> Iterator[None]:
    exceptions = import_peer("mlflow.exceptions", EXTRA)
    try:
        yield
    except exceptions.MlflowException as error:
        raise InvalidArgument(f"MLflow refused a run: {quoted(str(error))}") from None
