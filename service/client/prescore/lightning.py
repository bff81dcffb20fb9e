"""`Trainer(callbacks=[LightningCallback("run-7", dataset=…, export=…)])` for Lightning."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prescore.training.callbacks import CheckpointExporter, Export, name_for_loggers
from prescore.training.watch import Watch

if TYPE_CHECKING:  # the type checker finds the same with and without Lightning
    Callback = object
    LightningModule = Any
    Trainer = Any
else:
    try:
        from lightning.pytorch import Callback, LightningModule, Trainer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "prescore.lightning needs Lightning: pip install 'prescore-client[lightning]'",
            name=error.name,
        ) from error


class LightningCallback(Callback):
    """Scores the model whenever the trainer saves a checkpoint, and logs the scores.

    `export(module, path)` writes the module as a Prescore checkpoint into a temporary file. The
    trainer's loggers get the scores in the training's own thread, as `prescore/cider_d` at the
    step of their checkpoint. With `stop_on`, a metric, training stops after `stop_after`
    checkpoints without an improvement (`Watch.should_stop`). With `stop_in`, the labels of a sweep,
    it stops where the sweep's best run is among the others (`Watch.should_stop_in`). With
    `keep_best`, a file or a folder, the best checkpoint by `keep_on` (default: `stop_on`, else
    cider_d) is kept there. Other arguments are those of `prescore.watch`.
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

    @property
    def run(self) -> Watch | None:
        """The watch of this training; None in every process except the first."""
        return self._exporter.watch

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        del pl_module
        if trainer.is_global_zero:
            self._exporter.begin()

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        del checkpoint
        self._exporter.save(pl_module, trainer.global_step)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._log(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        del pl_module
        self._log(trainer)
        stop = trainer.strategy.reduce_boolean_decision(self._exporter.should_stop(), all=False)
        trainer.should_stop = trainer.should_stop or stop

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        del trainer, pl_module, exception
        self._exporter.abandon()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        del pl_module
        if stage == "fit":
            self._exporter.close()
            self._log(trainer)

    def _log(self, trainer: Trainer) -> None:
        for step, numbers in self._exporter.take_news():
            for logger in trainer.loggers:
                logger.log_metrics(name_for_loggers(numbers), step=step)
