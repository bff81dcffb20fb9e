"""Formats of exports, by name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from prescore.errors import InvalidArgument
from prescore.exports.every_eval_ever import write_every_eval_ever
from prescore.exports.finished_runs import FinishedRun
from prescore.exports.inspect_logs import write_inspect_logs
from prescore.exports.mlflow_runs import write_mlflow_runs
from prescore.exports.score_tables import write_score_file
from prescore.exports.wandb_runs import write_wandb_runs

FormatName = Literal["csv", "every-eval-ever", "inspect", "mlflow", "wandb"]
WITH_SAMPLES = {"every-eval-ever", "inspect"}  # formats with a record for each caption


def write_runs(
    name: FormatName, runs: Iterable[FinishedRun], out: Path | None, organization: str
) -> None:
    """Write runs to `out`: a new folder; of csv a file, or stdout for None."""
    match name:
        case "csv":
            write_score_file(runs, out)
        case "mlflow":
            write_mlflow_runs(runs, out)
        case "every-eval-ever":
            write_every_eval_ever(runs, _require_folder(out), organization)
        case "inspect":
            write_inspect_logs(runs, _require_folder(out))
        case "wandb":
            write_wandb_runs(runs, _require_folder(out))


def _require_folder(out: Path | None) -> Path:
    if out is None:
        raise InvalidArgument("--out: expected a new or empty folder to write, found none")
    return out
