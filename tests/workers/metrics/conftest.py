import pytest

from workers.metrics import tuples
from workers.metrics.jvm import Jvm
from workers.metrics.tuple_store import TupleStore


@pytest.fixture(scope="session")
def jvm():
    """One warm Java for all: METEOR's table alone takes 5 to 15 s to read."""
    with Jvm() as java:
        yield java


@pytest.fixture(scope="session")
def parser(spice_jars):
    """One warm parser for all; it remembers nothing."""
    parser = tuples.Parser(spice_jars)
    yield parser
    parser.close()


@pytest.fixture(scope="session")
def remembering(spice_jars, tmp_path_factory):
    """A parser with a store of its own."""
    path = tmp_path_factory.mktemp("store") / "tuples.sqlite"
    parser = tuples.Parser(spice_jars, TupleStore(path, tuples.PARSER))
    yield parser
    parser.close()
