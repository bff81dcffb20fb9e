"""`Trainer(callbacks=[LightningCallback("run-7", dataset=…, export=…)])` for Lightning."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prescore.training.exporting import Export, Exporting
from prescore.training.keeping import Best
from prescore.training.watching import Watch

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
    checkpoints without an improvement (`Watch.should_stop`). With `keep_best`, a file or a folder,
    the best checkpoint by `keep_on` (default: `stop_on`, else cider_d) is kept there. Other
    arguments are those of `prescore.watch`.
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
        **watched: Any,
    ) -> None:
        best = None if keep_best is None else Best(keep_best, keep_on or stop_on or "cider_d")
        self._exporting = Exporting(
            run, export, stop_on, stop_after, best, dataset=dataset, **watched
        )

    @property
    def run(self) -> Watch | None:
        """The watch of this training; None in every process except the first."""
        return self._exporting.watch

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        del pl_module
        if trainer.is_global_zero:
            self._exporting.begin()

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        del checkpoint
        self._exporting.save(pl_module, trainer.global_step)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._log(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        del pl_module
        self._log(trainer)
        stop = trainer.strategy.reduce_boolean_decision(self._exporting.should_stop(), all=False)
        trainer.should_stop = trainer.should_stop or stop

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        del trainer, pl_module, exception
        self._exporting.abandon()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        del pl_module
        if stage == "fit":
            self._exporting.close()
            self._log(trainer)

    def _log(self, trainer: Trainer) -> None:
        for step, numbers in self._exporting.news():
            named = {f"prescore/{name}": value for name, value in numbers.items()}
            for logger in trainer.loggers:
                logger.log_metrics(named, step=step)
