"""A training run that is watched: sent while it goes on, never held up, nothing left behind."""

import _thread
import json
import logging
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import prescore
from client.scripted_service import score
from helpers.waits import until
from prescore.training import follower

DATASET = {"name": "shapes", "version": "v1", "digest": "sha256:a", "split": "val"}
FORECAST = {"cider_d": {"value": 0.5, "interval": [0.4, 0.6], "none_because": None}}


@pytest.fixture(autouse=True)
def _polls_at_once(quick, monkeypatch):
    monkeypatch.setattr(follower, "SHORTEST_POLL_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield

    def is_none_left():
        return "prescore-watch" not in [one.name for one in threading.enumerate()]

    until(is_none_left, 10, "the end of a watch's thread")


@pytest.fixture
def watch(service):
    def begin(run="run-7", **options):
        options = {"dataset": "shapes/val", "url": service.url, "timeout": 10, **options}
        return prescore.watch(run, **options)

    return begin


@pytest.fixture
def saved(tmp_path):
    def save(step):
        path = tmp_path / f"step-{step}.safetensors"
        path.write_bytes(b"weights\0of step %d" % step)
        return path

    return save


@pytest.fixture
def silenced(caplog):
    caplog.set_level(logging.WARNING, logger="prescore")
    return lambda: [record.getMessage() for record in caplog.records]


def _begun(service, number):
    service.wait_until(lambda: f"ev_{number}" in service.evaluations)
    return f"ev_{number}"


def _succeed(service, number, value, half=0.01, **more):
    found = {"cider_d": score(value, interval=[value - half, value + half]), **more}
    service.change(_begun(service, number), status="succeeded", scores=found)


@contextmanager
def _unreachable(service, times=10_000):
    for method in ("HEAD", "PUT", "POST", "GET"):
        service.fault(method, "/v1/", lose="request", times=times)
    yield
    for fault in service.faults:
        fault.times = 0


def test_checkpoints_are_scored_as_they_are_saved(service, watch, saved, silenced):
    heard = []
    with watch(
        on_scores=lambda step, numbers: heard.append((step, numbers)),
        labels={"branch": "main"},
        postgen=["cider_d"],
    ) as run:
        assert run.latest is None
        assert run.best("cider_d") is None
        run.checkpoint(saved(10), step=10)
        service.change(_begun(service, 1), forecast=FORECAST)
        until(lambda: heard, 10, "news")
        assert run.latest.forecast["cider_d"].high == 0.6
        run.checkpoint(str(saved(20)), step=20)
        _succeed(service, 2, 0.3)
        until(lambda: len(heard) == 2, 10, "more news")
        _succeed(service, 1, 0.45)
    assert heard == [
        (10, {"forecast/cider_d": 0.5}),
        (20, {"cider_d": 0.3}),
        (10, {"cider_d": 0.45}),
    ]
    assert [result.step for result in run.results()] == [10, 20]
    assert run.latest.step == 20
    assert run.best("cider_d").path == saved(10)
    assert run.results()[0].evaluation.labels == {"branch": "main", "run": "run-7", "step": "10"}
    assert {sent["dataset"] for sent in service.sent} == {"shapes/val"}
    assert all(sent["postgen"] == ["cider_d"] for sent in service.sent)
    assert sorted(service.checkpoints.values()) == [
        b"weights\0of step 10",
        b"weights\0of step 20",
    ]
    assert silenced() == []


def test_a_training_is_not_held_up_and_the_latest_wins(service, watch, saved, silenced):
    with watch(waiting=2) as run:
        with _unreachable(service):
            run.checkpoint(saved(0), step=0)
            service.wait_until(lambda: service.seen("HEAD"))  # it is being sent
            begun = time.monotonic()
            for step in range(1, 6):
                run.checkpoint(saved(step), step=step)
            assert time.monotonic() - begun < 0.5
            assert not run.should_stop()
        for number in (1, 2, 3):
            _succeed(service, number, number / 10)
    steps = {result.step: result for result in run.results()}
    assert [step for step, result in steps.items() if result.scores] == [0, 4, 5]
    assert all("left out" in steps[step].problem for step in (1, 2, 3))
    told = silenced()
    assert sum("no answer from" in text for text in told) == 1
    assert sum("older ones are left out, the first is step 1" in text for text in told) == 1
    assert len(told) == 2


def test_only_so_many_evaluations_are_under_way(service, watch, saved, monkeypatch):
    monkeypatch.setattr(follower, "MOST_OPEN", 1)
    with watch() as run:
        run.checkpoint(saved(1), step=1)
        _begun(service, 1)
        run.checkpoint(saved(2), step=2)
        polled = len(service.requests)
        service.wait_until(lambda: len(service.requests) > polled + 3)
        assert list(service.evaluations) == ["ev_1"]
        _succeed(service, 1, 0.4)
        _succeed(service, 2, 0.4)


def test_the_end_waits_so_long_and_says_what_goes_on_without_it(service, watch, saved, silenced):
    begun = time.monotonic()
    with watch(timeout=0.3) as run:
        run.checkpoint(saved(1), step=1)
        _begun(service, 1)
    assert 0.3 <= time.monotonic() - begun < 2
    assert silenced() == ["ev_1: not waited for any longer; they go on in the service"]
    assert service.evaluations["ev_1"]["status"] == "running"
    with pytest.raises(prescore.InvalidArgument, match="this watch has ended"):
        run.checkpoint(saved(2), step=2)
    assert len(run.results()) == 1


def test_an_exception_is_not_held_back(service, watch, saved):
    begun = time.monotonic()
    run = watch(timeout=60)
    run.checkpoint(saved(1), step=1)
    _begun(service, 1)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    assert time.monotonic() - begun < 5


def test_ctrl_c_leaves_promptly_while_the_end_waits(service, watch, saved, silenced):
    def interrupt():
        polled = len(service.requests)
        service.wait_until(lambda: len(service.requests) > polled + 3)
        _thread.interrupt_main()

    run = watch(timeout=60)
    run.checkpoint(saved(1), step=1)
    _begun(service, 1)
    thread = threading.Thread(target=interrupt)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), run:
        thread.start()
    thread.join()
    assert time.monotonic() - begun < 5
    assert silenced() == ["ev_1: not waited for any longer; they go on in the service"]


def test_without_a_service_the_end_is_no_later_than_its_patience(watch, service, saved, silenced):
    with _unreachable(service):
        begun = time.monotonic()
        with watch(timeout=60, patience=0.2) as run:
            run.checkpoint(saved(1), step=1)
        assert time.monotonic() - begun < 5
    assert "no answer from" in run.results()[0].problem
    assert len(silenced()) == 2  # that it is tried again, and that it was given up


def test_strict_raises_what_is_logged_else(watch, service, saved, silenced):
    with _unreachable(service):
        run = watch(strict=True, patience=0.1)
        run.checkpoint(saved(1), step=1)
        until(lambda: run.results()[0].problem, 10, "a problem")
        with pytest.raises(prescore.Unreachable):
            run.should_stop()
        run.checkpoint(saved(2), step=2)
        with pytest.raises(prescore.Unreachable):
            run.close()


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_refused_is_told_and_the_next_is_sent(service, watch, saved, silenced, strict):
    service.fault("POST", "/v1/evaluations", status=422, body={"detail": "another encoder"})
    run = watch(strict=strict)
    run.checkpoint(saved(1), step=1)
    until(lambda: run.results()[0].problem, 10, "a problem")
    if strict:
        with pytest.raises(prescore.Refused, match="another encoder"):
            run.should_stop()
    until(silenced, 10, "a line in the log")
    assert len(silenced()) == 1
    assert "step 1 is not scored" in silenced()[0]
    assert "another encoder" in silenced()[0]
    run.checkpoint(saved(2), step=2)
    _succeed(service, 1, 0.4)
    run.close()
    assert run.best("cider_d").step == 2


def test_a_run_that_failed_is_told_with_the_scores_it_has(service, watch, saved, silenced):
    with watch(strict=True) as run:
        run.checkpoint(saved(1), step=1)
        error = {"title": "One task failed", "detail": "spice"}
        service.change(
            _begun(service, 1), status="failed", error=error, scores={"cider_d": score(0.4)}
        )
    assert silenced() == ["step 1: ev_1 failed: spice"]
    assert run.latest.numbers == {"cider_d": 0.4}


def test_a_file_that_was_written_to_again_is_not_scored_as_another_step(
    service, watch, saved, silenced
):
    with watch() as run:
        with _unreachable(service):
            path = saved(1)
            run.checkpoint(path, step=1)
            service.wait_until(lambda: service.seen("HEAD"))
            path.write_bytes(b"weights\0of another step")
        until(lambda: run.results()[0].problem, 10, "a problem")
    assert service.evaluations == {}
    assert "1.safetensors" in silenced()[-1]


def test_a_file_that_is_not_there_is_told(watch, tmp_path, silenced):
    with watch() as run:
        run.checkpoint(tmp_path / "none", step=1)
    assert "none cannot be read" in silenced()[0]
    with pytest.raises(prescore.InvalidArgument, match="cannot be read"), watch(strict=True) as run:
        run.checkpoint(tmp_path / "none", step=1)


def test_a_file_is_removed_once_it_was_sent_or_left_out(service, watch, saved):
    with watch(waiting=1, timeout=0.1) as run:
        run.checkpoint(saved(1), step=1, remove=True)
        _succeed(service, 1, 0.4)
        until(lambda: run.results()[0].numbers, 10, "its scores: it is asked for no more")
        assert not run.results()[0].path.exists()
        with _unreachable(service):
            sent = len(service.seen("HEAD"))
            run.checkpoint(saved(2), step=2, remove=True)
            service.wait_until(lambda: len(service.seen("HEAD")) > sent)
            for step in (3, 4):
                run.checkpoint(saved(step), step=step, remove=True)
            assert [one.path.exists() for one in run.results()] == [False, True, False, True]
            run.abandon()
    assert not any(one.path.exists() for one in run.results())


@pytest.mark.parametrize("strict", [True, False])
def test_a_logger_that_raises_does_not_end_the_watch(service, watch, saved, silenced, strict):
    def log(step, numbers):
        raise OSError("disk full")

    run = watch(on_scores=log, strict=strict)
    for number in (1, 2):
        run.checkpoint(saved(number), step=number)
        _begun(service, number)
    for number in (1, 2):
        _succeed(service, number, 0.4)
    if strict:
        with pytest.raises(OSError, match="disk full"):
            run.close()
    else:
        run.close()
    assert silenced() == ["on_scores: OSError: disk full"]
    assert len([one for one in run.results() if one.scores]) == 2


def test_training_stops_when_scores_no_longer_improve(service, watch, saved, silenced):
    stopped = []
    with watch() as run:
        for number, value in enumerate((0.3, 0.4, 0.405, 0.409), start=1):
            run.checkpoint(saved(number), step=number)
            _succeed(service, number, value)
            until(lambda number=number: run.results()[number - 1].scores, 10, "its scores")
            stopped.append(run.should_stop("cider_d", patience=2))
        assert stopped == [False, False, False, True]
        assert not run.should_stop("cidr_d")
        assert not run.should_stop("cidr_d")
    assert silenced() == ["should_stop: cidr_d is not among the scores: cider_d"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "nowhere"}, "expected a URL"),
        ({"waiting": 0}, "at least 1 checkpoint, found 0"),
        ({"post_gen": ["cider_d"]}, "unknown argument post_gen: did you mean postgen"),
    ],
)
def test_what_cannot_be_watched_is_told_at_once(watch, options, message):
    with pytest.raises(prescore.InvalidArgument, match=message):
        watch(**options)


def _read_scalars(folder):
    """Scalars of event files by tag, by TensorBoard's own reader."""
    name = "tensorboard.backend.event_processing.event_accumulator"
    reader = pytest.importorskip(name, reason="tensorboard is not installed")
    events = reader.EventAccumulator(str(folder)).Reload()
    return {
        tag: [(one.step, one.value) for one in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def _watch_two_steps(service, watch, saved, **options):
    with watch(**options) as run:
        for number, (step, value) in enumerate(((10, 0.25), (20, 0.3)), 1):
            run.checkpoint(saved(step), step=step)
            ppl = score(12.5 / number, family="pregen", higher_is_better=False)
            _succeed(service, number, value, perplexity=ppl)
            until(lambda at=number: len(run.results()[at - 1].numbers) == 2, 10, "its scores")


SCALARS = {  # TensorBoard keeps 32 bits
    "prescore/cider_d": [(10, 0.25), (20, pytest.approx(0.3, rel=2**-24))],
    "prescore/perplexity": [(10, 12.5), (20, 6.25)],
}


@pytest.mark.filterwarnings("default")  # tensorboard's own
def test_scores_are_scalars_of_tensorboard_at_their_steps(service, watch, saved, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    heard = []
    options = {"on_scores": lambda *given: heard.append(given), "tensorboard": tmp_path / "log"}
    _watch_two_steps(service, watch, saved, **options)
    assert _read_scalars(tmp_path / "log") == SCALARS
    assert heard[0] == (10, {"cider_d": 0.25, "perplexity": 12.5})


@pytest.mark.filterwarnings("default")
def test_a_writer_of_the_training_is_written_to_and_stays_open(service, watch, saved, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path / "log"))
    _watch_two_steps(service, watch, saved, tensorboard=writer)
    writer.add_scalar("loss", 1.5, 30)
    writer.close()
    assert _read_scalars(tmp_path / "log") == {**SCALARS, "loss": [(30, 1.5)]}


def test_without_tensorboard_a_sentence_says_what_to_install(watch, tmp_path, monkeypatch):
    for name in ("torch.utils.tensorboard", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(prescore.InvalidArgument, match="pip install tensorboard"):
        watch(tensorboard=tmp_path / "log")
    with pytest.raises(prescore.InvalidArgument, match="a log directory or a SummaryWriter, found"):
        watch(tensorboard=5)


SWEEP = {"sweep": "7"}


def _answer_ranking(service, advice, not_yet=None):
    runs = [{"run": run, "step": 1, "percent": 10, "advice": told} for run, told in advice.items()]
    body = {"dataset": DATASET, "target": "cider_d", "percent": 10, "probability": 0.97}
    body = json.dumps({**body, "runs": runs, "not_yet": not_yet}).encode()
    headers = {"Content-Type": "application/json"}
    service.fault("GET", "/ranking", status=200, body=body, headers=headers)


def test_a_training_asks_whether_the_best_of_its_sweep_is_another(service, watch, silenced):
    with watch() as run:
        _answer_ranking(service, {"run-7": "stop", "run-8": "keep"})
        assert run.should_stop_in(SWEEP, at=10, steps=300)
        _answer_ranking(service, {"run-7": "keep", "run-8": "stop"})
        assert not run.should_stop_in(SWEEP, "meteor", sure=0.9)
        assert silenced() == []
        for _ in range(2):
            _answer_ranking(service, {"run-7": None}, "expected 8 past trainings, found 2")
            assert not run.should_stop_in(SWEEP)
        told = "should_stop_in: not yet: expected 8 past trainings, found 2"
        assert silenced() == [told]
    first, second, *_ = (path for _, path, _ in service.seen("GET", "/ranking"))
    split = "/v1/datasets/shapes/ranking?split=val"
    assert first == f"{split}&target=cider_d&at=10&steps=300&label.sweep=7"
    assert second == f"{split}&target=meteor&sure=0.9&label.sweep=7"
    with pytest.raises(prescore.InvalidArgument, match="this watch has ended"):
        run.should_stop_in(SWEEP)


@pytest.mark.parametrize("strict", [True, False])
def test_a_training_goes_on_where_no_ranking_comes(service, watch, silenced, strict):
    with watch(strict=strict) as run:
        with _unreachable(service):
            assert not run.should_stop_in(SWEEP)
            assert not run.should_stop_in(SWEEP)
        (told,) = silenced()
        assert told.startswith("should_stop_in: no answer from")
        service.fault("GET", "/ranking", status=422, body={"detail": "no such metric"})
        if strict:
            with pytest.raises(prescore.Refused, match="no such metric"):
                run.should_stop_in(SWEEP)
        else:
            assert not run.should_stop_in(SWEEP)
            assert "no such metric" in silenced()[-1]
