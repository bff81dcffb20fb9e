"""Runs of Weights & Biases, by its own offline writer; `wandb sync` sends them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prescore.exports.finished_runs import FinishedRun
from prescore.exports.new_files import open_new_folder
from prescore.exports.trainings import Training, group_trainings, import_peer, list_numbers

EXTRA = "wandb"
PROJECT = "prescore"
SETTINGS = {  # without facts about this machine: the scores are of another one
    "mode": "offline",
    "host": "",
    "console": "off",
    "silent": True,
    "disable_git": True,
    "disable_code": True,
    "x_disable_stats": True,
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_save_requirements": False,
}


def write_wandb_runs(runs: Iterable[FinishedRun], out: Path) -> None:
    """Write a new folder with `wandb/offline-run-...`; nothing is sent."""
    wandb = import_peer("wandb", EXTRA)
    with open_new_folder(out) as folder:
        for group in group_trainings(runs):
            _write_group(wandb, folder, group)


def _write_group(wandb: Any, folder: Path, group: Training) -> None:
    """Write a run whose id is that of its first evaluation: a second sync makes no second run."""
    settings = wandb.Settings(**SETTINGS)
    run = wandb.init(
        project=PROJECT,
        id=group.first.evaluation.id,
        name=group.name,
        config=group.find_common_facts(),
        dir=str(folder),
        settings=settings,
    )
    with run:
        for step, one in group.steps:
            run.log({**list_numbers(one), "evaluation": one.evaluation.id}, step=step)
        run.summary.update(list_numbers(group.last))
