import pytest

from helpers import encoders
from workers.metrics.vectors import text_encoder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A small encoder's folder."""
    return encoders.make(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def model(folder):
    return text_encoder.read_encoder(folder)
