import pytest

from fleet import Fleet, bundle


@pytest.fixture(scope="session")
def fleet(tmp_path_factory):
    """One service for all trials that leave it as it was."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet")).start()
    with fleet.client() as client:
        assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
    yield fleet
    fleet.stop()


@pytest.fixture
def client(fleet):
    with fleet.client() as client:
        yield client
