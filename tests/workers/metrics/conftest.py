import pytest

from workers.metrics.jvm import Jvm


@pytest.fixture(scope="session")
def jvm():
    """One warm Java for all: METEOR's table alone takes 5 to 15 s to read."""
    with Jvm() as java:
        yield java
