from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.contract.errors import SandboxUnavailable
from service.kernel import confinement


@contextmanager
def _skipped_without_sandbox() -> Iterator[None]:
    """Skip what cannot be opened on a machine that confines nothing, such as tokenizers."""
    try:
        yield
    except SandboxUnavailable as error:
        if confinement.explain_missing_sandbox() is None:
            raise
        pytest.skip(error.detail)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with _skipped_without_sandbox():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _skipped_without_sandbox():
        return (yield)


@pytest.fixture(scope="session")
def needs_sandbox() -> None:
    """Skip where this machine cannot confine a child."""
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)


@pytest.fixture
def processors_here(monkeypatch):
    """Run folders' processors in this process: a child in the sandbox imports for five seconds.
    Those in the sandbox: test_vision_language.py, and over HTTP.
    """
    from workers.inference.huggingface import loader
    from workers.inference.huggingface.prompted_pictures import ProcessorChild

    def open_here(*given, **named):
        return ProcessorChild(*given, **{**named, "is_confined": True})

    monkeypatch.setattr(loader, "ProcessorChild", open_here)
