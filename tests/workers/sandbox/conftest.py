import functools
from pathlib import Path

import pytest

from helpers import hostile_child
from workers.sandbox import operations


@pytest.fixture(scope="session")
def hostile(needs_sandbox):
    """Runs an operation of tests/helpers/hostile_child.py in the sandbox."""
    run = functools.partial(operations.run_operation, modules=[Path(hostile_child.__file__).parent])

    def perform(name, parameters=None, *, inputs=(), outputs=(), **options):
        return run(f"hostile_child:{name}", inputs, outputs, parameters, **options)

    return perform
