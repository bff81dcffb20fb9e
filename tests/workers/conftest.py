import pytest

from workers.sandbox import confinement


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
