"""The runs of a sweep and the past trainings beside them, by the labels of their evaluations.

`steps` is the number of steps of a whole training, `stopped` marks one that did not go on to its
end; `recipe` tells which trainings are alike.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.runs import training_labels, training_scores
from service.runs.signal_noise import LabelledTraining
from service.runs.training_scores import LabelledCheckpoint

_STEPS, _STOPPED = "steps", "stopped"
_OF_SWEEP, _OF_PAST = "label stopped, of the sweep", "label stopped"
_UNDER_WAY = "a last step before label steps"


@dataclass(frozen=True)
class SweepTrainings:
    """Trainings by label `run`, with the ends that they have or will have. `reached`: the steps of
    each that were evaluated, in ascending order; `usual_end`: the end that runs of the sweep have
    for want of another.
    """

    trainings: Mapping[str, LabelledTraining]
    reached: Mapping[str, Sequence[float]]
    sweep: Sequence[str]
    past: Sequence[str]
    usual_end: float | None
    left_out: Mapping[str, int]

    def find_open(self) -> list[str]:
        """Find the sweep's runs that have not ended."""
        return [run for run in self.sweep if self.compute_percent(run) < 100]

    def compute_percent(self, run: str) -> float:
        """Compute the share of a run's steps that it has reached."""
        end = self.trainings[run].end
        return min(100.0, 100 * self.reached[run][-1] / end) if end else 100.0

    def find_share(self) -> float | None:
        """Find the largest share that all runs have reached; None where all have ended."""
        return min((self.compute_percent(run) for run in self.find_open()), default=None)

    def has_reached(self, run: str, percent: float) -> bool:
        """Tell whether the run's next checkpoint is beyond this share of its steps."""
        *before, last = self.reached[run]
        following = last + (last - before[-1] if before else last)
        wanted = percent * self.trainings[run].end
        return 100 * last >= wanted * (1 - 1e-9) or 100 * following > wanted * (1 + 1e-9)

    def name_group(self, run: str) -> str:
        """Name the group of trainings that are alike: of a recipe, or of one run."""
        recipe = self.trainings[run].recipe
        return f"run {run}" if recipe is None else f"recipe {recipe}"


def divide_trainings(
    checkpoints: Sequence[LabelledCheckpoint], wanted: Mapping[str, str], steps: float | None
) -> SweepTrainings:
    """Divide trainings into runs with the labels `wanted` and past ones; `checkpoints` are in the
    order of `find_checkpoints`, `steps` is the end of each run.
    """
    trainings = training_scores.find_trainings(checkpoints)
    marks = {one.run: one.marks for one in reversed(checkpoints)}
    planned = {run: training_labels.read_step(marks[run].get(_STEPS, "")) for run in trainings}
    stopped = {one.run for one in checkpoints if _STOPPED in one.marks}
    sweep = {one.run for one in checkpoints if wanted.items() <= one.marks.items()}
    past, left_out = [], Counter[str]()
    for run, training in trainings.items():
        if run in stopped:
            left_out[_OF_SWEEP if run in sweep else _OF_PAST] += 1
        elif run not in sweep and training.end < (planned[run] or 0.0):
            left_out[_UNDER_WAY] += 1
        elif run not in sweep:
            past.append(run)
    ends = {run: steps or planned[run] for run in sorted(sweep - stopped)}
    usual = Counter(trainings[run].end for run in past).most_common(1)
    usual_end = usual[0][0] if usual and not all(ends.values()) else None
    for run, end in ends.items():
        last = trainings[run].end
        trainings[run] = replace(trainings[run], end=max(last, end or usual_end or last))
    return SweepTrainings(
        trainings=trainings,
        reached=_list_steps(checkpoints),
        sweep=list(ends),
        past=past,
        usual_end=usual_end,
        left_out=dict(left_out),
    )


def _list_steps(checkpoints: Sequence[LabelledCheckpoint]) -> dict[str, list[float]]:
    steps: dict[str, set[float]] = {}
    for one in checkpoints:
        steps.setdefault(one.run, set()).add(one.step)
    return {run: sorted(found) for run, found in steps.items()}
