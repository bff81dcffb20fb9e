"""The callbacks in real trainers, where those are installed; else with what stands in, said so."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

import prescore
from client.scripted_service import score
from helpers.waits import until
from prescore.training import follower
from prescore.training.watch import Watch

pytestmark = pytest.mark.filterwarnings("ignore")  # what trainers say of tiny trainings
IMPROVES = [0.3, 0.4, 0.5, 0.6]
STALLS = [0.3, 0.4, 0.4, 0.4, 0.4, 0.4]


class Canonical:
    """Exports weights, and remembers what was exported."""

    def __init__(self):
        self.paths = []
        self.written = []
        self.most_files = 0

    def __call__(self, model, path):
        self.paths.append(path)
        self.written.append(b"canonical\0 %r" % model.weight.tolist())
        path.write_bytes(self.written[-1])
        self.most_files = max(self.most_files, len(list(path.parent.iterdir())))


@pytest.fixture
def scored(service, monkeypatch):
    """A service that has scored every checkpoint at once, by values that are given in advance."""
    monkeypatch.setattr(follower, "SHORTEST_POLL_SECONDS", 0.02)
    start = service.start

    def by(values, *, both=False):
        left = iter(values)

        def ended(**fields):
            value = next(left)
            found = {
                "cider_d": score(value, interval=[value - 0.01, value + 0.01]),
                **({"perplexity": score(value, higher_is_better=False)} if both else {}),
            }
            return start(**fields, status="succeeded", scores=found)

        monkeypatch.setattr(service, "start", ended)
        return {"dataset": "shapes/val", "url": service.url, "timeout": 10}

    return by


class Model(torch.nn.Linear):
    def __init__(self):
        super().__init__(2, 1)

    def forward(self, x):
        return {"loss": super().forward(x).square().mean()}


def _wait_for_scores(callback):
    until(lambda: all(result.scores for result in callback.run.results()), 10, "scores")


# Hugging Face


def _train_with_trainer(callback, folder, epochs):
    pytest.importorskip("accelerate", reason="transformers' Trainer needs accelerate")
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Patient(TrainerCallback):
        def on_step_begin(self, *_, **__):
            _wait_for_scores(callback)

    settings = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=2,
        save_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    data = [{"x": torch.ones(2)} for _ in range(4)]
    trainer = Trainer(Model(), settings, train_dataset=data, callbacks=[Patient(), callback])
    trainer.train()
    return trainer.state


def _train_with_handler(callback, folder, epochs):
    """The part of transformers that calls callbacks, in the order in which Trainer does."""
    from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

    model = Model()
    handler = CallbackHandler([callback], model, None, None, None)
    args, state, control = SimpleNamespace(world_size=1), TrainerState(), TrainerControl()
    control = handler.on_train_begin(args, state, control)
    for _ in range(epochs):
        for _ in range(2):
            _wait_for_scores(callback)
            with torch.no_grad():
                model.weight += 1
            state.global_step += 1
            control = handler.on_step_end(args, state, control)
            if control.should_training_stop:
                break
        handler.on_save(args, state, control)
        if control.should_training_stop:
            break
    handler.on_train_end(args, state, control)
    return state


@pytest.fixture
def hugging_face(scored):
    """A callback that hears these scores."""
    from prescore.huggingface import HuggingFaceCallback

    def made(values, *, both=False, **options):
        given = {"export": Canonical(), **scored(values, both=both), **options}
        return HuggingFaceCallback("run-7", **given)

    return made


@pytest.fixture(params=[_train_with_handler, _train_with_trainer], ids=["handler", "trainer"])
def trained(request, tmp_path):
    return lambda callback, epochs: request.param(callback, tmp_path, epochs)


def test_hugging_faces_trainer_gets_scores_of_what_it_saves(hugging_face, service, trained):
    export, heard = Canonical(), []
    callback = hugging_face(IMPROVES, export=export, on_scores=lambda *told: heard.append(told))
    state = trained(callback, 4)
    assert [(step, numbers["cider_d"]) for step, numbers in heard] == list(
        zip((2, 4, 6, 8), IMPROVES, strict=True)
    )
    logged = [line for line in state.log_history if "prescore/cider_d" in line]
    assert logged == [{"prescore/cider_d": told["cider_d"], "step": step} for step, told in heard]
    assert len(set(service.checkpoints.values())) == 4
    assert callback.run.best("cider_d").step == 8
    assert not export.paths[0].parent.exists()


def test_hugging_faces_trainer_stops(hugging_face, trained):
    callback = hugging_face(STALLS, stop_on="cider_d", stop_after=2)
    state = trained(callback, 6)
    assert 8 <= state.global_step < 12  # the second of no improvement is saved at step 8
    assert len(callback.run.results()) <= 5


def test_the_trainers_own_loggers_get_the_scores(hugging_face, trained):
    callback, logged = hugging_face(IMPROVES), []
    callback.log_to(SimpleNamespace(log=logged.append))
    state = trained(callback, 4)
    assert logged == [
        {"prescore/cider_d": value, "prescore/step": step}
        for step, value in zip((2, 4, 6, 8), IMPROVES, strict=True)
    ]
    assert not [line for line in state.log_history if "prescore/cider_d" in line]


@pytest.mark.parametrize(("metric", "kept"), [("cider_d", 4), ("perplexity", 6)])
def test_the_best_checkpoint_is_kept_and_no_other(hugging_face, trained, tmp_path, metric, kept):
    """Where lower is better too."""
    export = Canonical()
    place = tmp_path / "kept"
    options = {"export": export, "keep_best": place, "keep_on": metric}
    callback = hugging_face([0.3, 0.6, 0.2, 0.4], both=True, **options)
    trained(callback, 4)
    assert [path.name for path in place.iterdir()] == ["best.safetensors"]
    assert callback.run.best(metric).step == kept
    weights = export.written[kept // 2 - 1]
    assert (place / "best.safetensors").read_bytes() == weights
    assert export.most_files <= 3  # the best, and those on the way
    assert not export.paths[0].parent.exists()


def test_a_best_file_that_can_no_longer_be_written_does_not_end_the_training(
    hugging_face, trained, tmp_path, caplog
):
    place = tmp_path / "kept" / "best.safetensors"
    callback = hugging_face(IMPROVES, keep_best=place)
    callback.on_train_begin(None, SimpleNamespace(is_world_process_zero=True), None)
    callback.abandon()
    place.mkdir()
    assert trained(callback, 4).global_step == 8
    assert len([line for line in caplog.messages if line.startswith("keep_best: ")]) == 1


def test_a_best_file_that_cannot_be_written_is_told_at_once(hugging_face, tmp_path):
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "best.safetensors"
    callback = hugging_face([], keep_best=place)
    with pytest.raises(prescore.InvalidArgument, match=r"keep_best.*cannot be written"):
        callback.on_train_begin(None, SimpleNamespace(is_world_process_zero=True), None)


def test_stopping_several_processes_is_refused(hugging_face):
    callback = hugging_face([], stop_on="cider_d")
    state = SimpleNamespace(is_world_process_zero=True)
    with pytest.raises(prescore.InvalidArgument, match=r"expected one process.*found 2"):
        callback.on_train_begin(SimpleNamespace(world_size=2), state, None)
    assert callback.run is None


# Lightning


@pytest.fixture
def lightning_callback():
    pytest.importorskip("lightning", reason="Lightning is not installed; a stand-in is tested")
    return importlib.import_module("prescore.lightning").LightningCallback


@pytest.fixture
def stand_in_callback(monkeypatch):
    """Of a package with the names that ours imports from Lightning's."""
    package, pytorch = ModuleType("lightning"), ModuleType("lightning.pytorch")
    for name in ("Callback", "LightningModule", "Trainer"):
        setattr(pytorch, name, type(name, (), {}))
    monkeypatch.setitem(sys.modules, "lightning", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", pytorch)
    monkeypatch.delitem(sys.modules, "prescore.lightning", raising=False)
    yield importlib.import_module("prescore.lightning").LightningCallback
    sys.modules.pop("prescore.lightning")


class Loop:
    """Calls a callback's hooks in Lightning's order; as much of its Trainer as they look at."""

    is_global_zero = True
    strategy = SimpleNamespace(reduce_boolean_decision=lambda decision, **_: decision)

    def __init__(self, callback):
        self.callback = callback
        self.global_step = 0
        self.should_stop = False
        self.logged = []
        self.loggers = [self]

    def log_metrics(self, metrics, step):
        self.logged.append((step, metrics))

    def fit(self, model, epochs):
        self.callback.on_fit_start(self, model)
        for _ in range(epochs):
            _wait_for_scores(self.callback)
            with torch.no_grad():
                model.weight += 1
            self.global_step += 1
            self.callback.on_train_batch_end(self, model, None, None, 0)
            self.callback.on_train_epoch_end(self, model)
            for _ in ("the best", "the last"):
                self.callback.on_save_checkpoint(self, model, {})
            if self.should_stop:
                break
        self.callback.teardown(self, model, "fit")


def test_the_hooks_of_lightning_log_and_stop(scored, service, stand_in_callback, tmp_path):
    export = Canonical()
    best = tmp_path / "best.safetensors"
    loop = Loop(stand_in_callback("run-7", export=export, keep_best=best, **scored(IMPROVES)))
    loop.fit(Model(), 4)
    assert best.read_bytes() == export.written[3]
    assert loop.logged == [(s, {"prescore/cider_d": v}) for s, v in enumerate(IMPROVES, start=1)]
    assert not export.paths[0].parent.exists()
    stalling = stand_in_callback(
        "run-8", export=Canonical(), stop_on="cider_d", stop_after=2, **scored(STALLS)
    )
    loop = Loop(stalling)
    loop.fit(Model(), 6)
    assert loop.global_step == 5


def test_a_training_that_raised_is_abandoned(hugging_face, scored, stand_in_callback):
    other = hugging_face([])
    other.on_train_begin(None, SimpleNamespace(is_world_process_zero=True), None)
    other.abandon()
    callback = stand_in_callback("run-7", export=Canonical(), **scored([]))
    loop = Loop(callback)
    callback.on_fit_start(loop, Model())
    callback.on_exception(loop, Model(), KeyboardInterrupt())
    callback.on_save_checkpoint(loop, Model(), {})  # as a ModelCheckpoint does after an exception
    assert callback.run.results() == []
    for each in (callback, other):
        with pytest.raises(prescore.InvalidArgument, match="has ended"):
            each.run.checkpoint("x", step=1)


def _lightning_fit(callback, folder, epochs, fails_at=None):
    import lightning.pytorch as lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers.logger import DummyLogger

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = Model()

        @property
        def weight(self):
            return self.layer.weight

        def on_train_epoch_start(self):
            _wait_for_scores(callback)
            if self.current_epoch == fails_at:
                raise ZeroDivisionError

        def training_step(self, batch, _):
            return self.layer(batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    class Logger(DummyLogger):
        def __init__(self):
            super().__init__()
            self.logged = []

        def log_metrics(self, metrics, step=None):
            self.logged.append((step, metrics))

    logger = Logger()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        logger=logger,
        callbacks=[callback, ModelCheckpoint(folder, save_last=True, save_top_k=-1)],
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2))
    return trainer, [line for line in logger.logged if any("prescore/" in name for name in line[1])]


def test_lightnings_trainer_logs_scores_of_what_it_saves(
    scored, service, lightning_callback, tmp_path
):
    callback = lightning_callback("run-7", export=Canonical(), **scored(IMPROVES))
    _, logged = _lightning_fit(callback, tmp_path, 4)
    expected = zip((2, 4, 6, 8), IMPROVES, strict=True)
    assert logged == [(step, {"prescore/cider_d": value}) for step, value in expected]
    assert len(set(service.checkpoints.values())) == 4


@pytest.fixture
def hopeless(monkeypatch):
    """The sweeps that a training asked about, whose best run is another from the second on."""
    asked = []

    def should_stop_in(watch, sweep, metric):
        asked.append((sweep, metric))
        return len(asked) > 1

    monkeypatch.setattr(Watch, "should_stop_in", should_stop_in)
    return asked


def test_trainers_stop_a_run_that_is_not_the_best_of_its_sweep(
    scored, lightning_callback, hugging_face, trained, hopeless, tmp_path
):
    more = {"export": Canonical(), "stop_in": {"sweep": "7"}}
    callback = lightning_callback("run-7", **more, **scored(IMPROVES * 2))
    trainer, _ = _lightning_fit(callback, tmp_path, 8)
    assert trainer.current_epoch < 8
    assert hopeless == [({"sweep": "7"}, "cider_d")] * 2
    hopeless.clear()
    callback = hugging_face(IMPROVES * 2, stop_in={"sweep": "7"})
    assert trained(callback, 8).global_step < 16
    assert len(hopeless) == 2


def test_lightnings_trainer_stops(scored, lightning_callback, tmp_path):
    callback = lightning_callback(
        "run-7", export=Canonical(), stop_on="cider_d", stop_after=2, **scored(STALLS)
    )
    trainer, _ = _lightning_fit(callback, tmp_path, 6)
    assert trainer.current_epoch <= 5


def test_lightnings_trainer_leaves_no_thread_when_it_raises(scored, lightning_callback, tmp_path):
    callback = lightning_callback("run-7", export=Canonical(), **scored(IMPROVES))
    with pytest.raises(ZeroDivisionError):
        _lightning_fit(callback, tmp_path, 4, fails_at=2)
    assert len(callback.run.results()) == 2
    with pytest.raises(prescore.InvalidArgument, match="has ended"):
        callback.run.checkpoint("x", step=9)


@pytest.mark.parametrize(
    ("module", "foreign"), [("lightning", "lightning"), ("huggingface", "transformers")]
)
def test_what_is_not_installed_is_named(monkeypatch, module, foreign):
    for name in [one for one in sys.modules if one.partition(".")[0] == foreign]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, foreign, None)
    monkeypatch.delitem(sys.modules, f"prescore.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"prescore-client\[{module}\]"):
        importlib.import_module(f"prescore.{module}")
