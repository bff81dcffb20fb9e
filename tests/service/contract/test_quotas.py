"""The operator's file of limits: read strictly, and merged from default, team and key."""

from pathlib import Path

import pytest

from service.contract import quotas
from service.contract.askers import Asker, Scope
from service.contract.errors import InvalidSetting
from service.contract.quotas import Quotas, QuotaTable

FILE = """
[default]
runs = 10
upload_bytes = 1e9

[teams.vision]
runs = 20
stored_bytes = 5

[keys.4k2m9x0qpz7a]
requests = 3
runs = 1
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "limits.toml"
        path.write_bytes(text.encode())
        return quotas.read_quotas(path)

    return of


def _of(allowed, team="vision", key="other0000000"):
    return allowed.of(Asker(team, Scope.READ, key)).model_dump(exclude_none=True)


def test_a_key_comes_before_its_team_and_that_before_the_default(read):
    allowed = read(FILE)
    assert _of(allowed, "others") == {"requests": 60000, "runs": 10, "upload_bytes": 1e9}
    assert _of(allowed) == {"requests": 60000, "runs": 20, "upload_bytes": 1e9, "stored_bytes": 5}
    own = {"requests": 3, "runs": 1, "upload_bytes": 1e9, "stored_bytes": 5}
    assert _of(allowed, key="4k2m9x0qpz7a") == own


def test_who_asks_without_a_key_has_no_limits(read):
    assert read(FILE).of(Asker()) == Quotas()


def test_without_a_file_requests_alone_are_limited_and_one_that_lacks_is_told(tmp_path):
    assert quotas.read_quotas(None) == QuotaTable()
    assert _of(QuotaTable()) == {"requests": 60000}
    with pytest.raises(InvalidSetting, match="cannot be read"):
        quotas.read_quotas(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[default]\nrun = 1", "default.run: Extra inputs"),
        ("[defaults]\nruns = 1", "defaults: Extra inputs"),
        ("[default]\nruns = -1", "default.runs: Input should be greater"),
        ("[default]\nruns = nan", "default.runs: "),
        ("[teams.'Red!']\nruns = 1", "teams.Red!: String should match"),
        ("[keys.psk_x]\nruns = 1", "keys.psk_x: String should match"),
        ("[default", "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(read, text, said):
    with pytest.raises(InvalidSetting) as caught:
        read(text)
    assert "PRESCORE_LIMITS: " in caught.value.detail
    assert said in caught.value.detail


def test_the_file_in_deploy_is_read():
    allowed = quotas.read_quotas(Path(__file__).parents[3] / "deploy" / "limits.toml")
    assert _of(allowed)["requests"] == 60_000
    assert set(_of(allowed)) == set(Quotas.model_fields)
