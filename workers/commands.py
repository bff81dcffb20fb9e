"""The workers' commands: they run here, with no service. torch is imported where it is needed."""

from workers.cli.assets import assets
from workers.cli.check import check
from workers.cli.convert import convert
from workers.cli.doctor import doctor
from workers.cli.judge import judge
from workers.cli.lab import lab
from workers.cli.learned import learned
from workers.cli.probe import probe
from workers.cli.score import score
from workers.cli.worker import worker

__all__ = [
    "assets",
    "check",
    "convert",
    "doctor",
    "judge",
    "lab",
    "learned",
    "probe",
    "score",
    "worker",
]
