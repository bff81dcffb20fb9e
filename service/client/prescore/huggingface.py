"""`Trainer(callbacks=[HuggingFaceCallback("run-7", dataset=…, export=…)])` for Hugging Face."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from prescore.errors import InvalidArgument
from prescore.training.callbacks import CheckpointExporter, Export, name_for_loggers
from prescore.training.follower import OnScores
from prescore.training.watch import Watch

try:
    from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
    from transformers.training_args import TrainingArguments
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "prescore.huggingface needs transformers: pip install 'prescore-client[huggingface]'",
        name=error.name,
    ) from error


class LoggingTrainer(Protocol):
    """A `transformers.Trainer`, as far as it is needed here."""

    def log(self, logs: dict[str, float]) -> None: ...


class HuggingFaceCallback(TrainerCallback):
    """Scores the model whenever the trainer saves a checkpoint.

    `export(model, path)` writes the model as a Prescore checkpoint into a temporary file. The
    scores go into the trainer's `state.log_history`, as `prescore/cider_d` with the step of their
    checkpoint, and to `on_scores(step, numbers)`, called in the training's own thread; after
    `log_to(trainer)` also to what the trainer reports to, such as TensorBoard. With `stop_on`, a
    metric, training stops after `stop_after` checkpoints without an improvement
    (`Watch.should_stop`). With `stop_in`, the labels of a sweep, it stops where the sweep's best
    run is among the others (`Watch.should_stop_in`). With `keep_best`, a file or a folder, the best
    checkpoint by `keep_on` (default: `stop_on`, else cider_d) is kept there. Other arguments are
    those of `prescore.watch`. A trainer does not tell its callbacks of an exception: call `abandon`
    then.
    """

    def __init__(
        self,
        run: str,
        *,
        dataset: str,
        export: Export,
        stop_on: str | None = None,
        stop_after: int = 3,
        keep_best: str | Path | None = None,
        keep_on: str | None = None,
        stop_in: Mapping[str, str] | None = None,
        on_scores: OnScores | None = None,
        **watched: Any,
    ) -> None:
        self._exporter = CheckpointExporter(
            *(run, export, stop_on, stop_after),
            keep_best=keep_best,
            keep_on=keep_on,
            stop_in=stop_in,
            dataset=dataset,
            **watched,
        )
        self._stops = stop_on is not None or stop_in is not None
        self._on_scores = on_scores
        self._trainer: LoggingTrainer | None = None

    @property
    def run(self) -> Watch | None:
        """The watch of this training; None in every process except the first."""
        return self._exporter.watch

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        del control
        if self._stops and args.world_size > 1:
            raise InvalidArgument(
                "stop_on: expected one process, since other processes are not stopped; found "
                f"{args.world_size}: call `run.should_stop` in the first and stop the others"
            )
        if state.is_world_process_zero:
            self._exporter.begin()

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
        self._exporter.save(model, state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        del args
        if self._log(state) and self._exporter.should_stop():
            control.should_training_stop = True
        return control

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        del args, control
        self._exporter.close()
        self._log(state)

    def log_to(self, trainer: LoggingTrainer) -> None:
        """Report scores as the trainer's own logs, with their checkpoint's step `prescore/step`.

        A trainer logs at its present step, which is later than the checkpoint's.
        """
        self._trainer = trainer

    def abandon(self) -> None:
        self._exporter.abandon()

    def _log(self, state: TrainerState) -> bool:
        """Log the new numbers; returns whether there were any."""
        news = list(self._exporter.take_news())
        for step, numbers in news:
            named = name_for_loggers(numbers)
            if self._trainer is None:
                state.log_history.append({**named, "step": step})
            else:
                self._trainer.log({**named, "prescore/step": step})
            if self._on_scores is not None:
                self._on_scores(step, numbers)
        return bool(news)
