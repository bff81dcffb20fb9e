"""For Hugging Face: `Trainer(callbacks=[PrescoreCallback("run-7", dataset=…, export=…)])`."""

from typing import Any

from prescore.errors import InvalidArgument
from prescore.training.exporting import Export, Exporting
from prescore.training.following import OnScores
from prescore.training.watching import Watch

try:
    from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
    from transformers.training_args import TrainingArguments
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "prescore.huggingface needs transformers: pip install 'prescore-client[huggingface]'",
        name=error.name,
    ) from error


class PrescoreCallback(TrainerCallback):
    """Scores the model whenever the trainer saves a checkpoint.

    `export(model, path)` writes the model as a checkpoint of Prescore's, into a temporary file.
    The numbers go into the trainer's `state.log_history`, as `prescore/cider_d` with the step of
    their checkpoint, and to `on_scores(step, numbers)`, in the training's own thread. With
    `stop_on`, a metric, training stops after `stop_after` checkpoints without an improvement, as
    `Watch.should_stop` says. What else can be given is as for `prescore.watch`. A trainer does not
    tell its callbacks of an exception: call `abandon` then.
    """

    def __init__(
        self,
        run: str,
        *,
        dataset: str,
        export: Export,
        stop_on: str | None = None,
        stop_after: int = 3,
        on_scores: OnScores | None = None,
        **watched: Any,
    ) -> None:
        self._exporting = Exporting(run, export, stop_on, stop_after, dataset=dataset, **watched)
        self._stops = stop_on is not None
        self._on_scores = on_scores

    @property
    def run(self) -> Watch | None:
        """The watch of the training; of several processes, in the first alone."""
        return self._exporting.watch

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        del control
        if self._stops and args.world_size > 1:
            raise InvalidArgument(
                "stop_on: expected one process, for the others are not told to stop; found "
                f"{args.world_size}: ask `run.should_stop` in the first and tell them yourself"
            )
        if state.is_world_process_zero:
            self._exporting.begin()

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        *,
        model: Any = None,
        **_: Any,
    ) -> None:
        del args, control
        self._exporting.save(model, state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        del args
        if self._log(state) and self._exporting.should_stop():
            control.should_training_stop = True
        return control

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        del args, control
        self._exporting.close()
        self._log(state)

    def abandon(self) -> None:
        self._exporting.abandon()

    def _log(self, state: TrainerState) -> bool:
        """Whether there was news."""
        told = list(self._exporting.news())
        for step, numbers in told:
            named = {f"prescore/{name}": value for name, value in numbers.items()}
            state.log_history.append({**named, "step": step})
            if self._on_scores is not None:
                self._on_scores(step, numbers)
        return bool(told)
