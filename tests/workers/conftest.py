import pytest

from workers.sandbox import confinement


@pytest.fixture(scope="session")
def needs_sandbox() -> None:
    """Skip where this machine cannot confine a child."""
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
