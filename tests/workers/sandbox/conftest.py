import functools
from pathlib import Path

import pytest

import hostile_child
from workers.sandbox import confinement, operations


@pytest.fixture(scope="session")
def hostile():
    """Runs an operation of tests/helpers/hostile_child.py in the sandbox; skips where there is
    none.
    """
    lacking = confinement.explain_missing_sandbox()
    if lacking is not None:
        pytest.skip(lacking)
    run = functools.partial(operations.run_operation, modules=[Path(hostile_child.__file__).parent])

    def perform(name, parameters=None, *, inputs=(), outputs=(), **options):
        return run(f"hostile_child:{name}", inputs, outputs, parameters, **options)

    return perform
