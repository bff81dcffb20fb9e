import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import torch
from hypothesis import settings

from service.contract import database

# The same examples each time: what fails here fails again. More of them: HYPOTHESIS_PROFILE=wide.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wide", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Real captions, features and published tables: PRESCORE_DATA, or ../shared/data."""
    path = Path(os.environ.get("PRESCORE_DATA", _BESIDE))
    if not path.is_dir():
        pytest.skip(f"no data: neither PRESCORE_DATA nor {_BESIDE} is a folder")
    return path


@pytest.fixture(scope="session", autouse=True)
def _two_threads() -> None:
    torch.set_num_threads(2)


POSTGRES = "postgresql+psycopg://postgres@127.0.0.1:5432"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request, tmp_path) -> Iterator[sa.Engine]:
    """An empty record on either database; PostgreSQL in a database of its own."""
    if request.param == "sqlite":
        engine = database.connect(f"sqlite:///{tmp_path / 'record.sqlite'}")
        database.migrate(engine)
        yield engine
        engine.dispose()
        return
    name = f"prescore_test_{uuid.uuid4().hex[:12]}"
    server = sa.create_engine(
        os.environ.get("PRESCORE_TEST_POSTGRES", f"{POSTGRES}/test"), isolation_level="AUTOCOMMIT"
    )
    try:
        with server.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    except sa.exc.OperationalError:
        pytest.skip("no PostgreSQL: neither PRESCORE_TEST_POSTGRES nor 127.0.0.1:5432 answers")
    engine = database.connect(server.url.set(database=name).render_as_string(hide_password=False))
    try:
        database.migrate(engine)
        yield engine
    finally:
        engine.dispose()
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}"))
        server.dispose()
