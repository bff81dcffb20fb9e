"""T01, T54: schemathesis, which makes requests from openapi.json by itself, finds no failure by any
check in its examples, at the bounds of what is described, at random, and along links; no answer is
late (tests/helpers/right_requests.py), and the memory of the API does not grow.

SCHEMATHESIS_SECONDS=1200 python -m pytest tests/trials/test_schemathesis.py -s
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers import load_probes
from helpers.fleet import ROOT
from service.access import keys
from service.contract.askers import Scope

SECONDS = int(os.environ.get("SCHEMATHESIS_SECONDS", "150"))
SEED = os.environ.get("SCHEMATHESIS_SEED", "1")
BUSY = SECONDS + 200  # a request that has begun is waited for
RUNS = ("evaluations", "comparisons", "probes", "learned", "studies")


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("schemathesis") is None,
    reason="schemathesis is not installed; `sh tests/run.sh --all` installs it",
)
@pytest.mark.parametrize("with_key", [False, True], ids=["open", "with-a-key"])
def test_schemathesis_finds_no_failure(empty_fleet, with_key):
    asks, own = [], {}
    if with_key:
        _, empty_fleet.key = keys.create_key(empty_fleet.records, "red", Scope.ADMIN)
        asks = ["--header", f"Authorization: Bearer {empty_fleet.key}"]
        own = {"RIGHT_REQUESTS_KEY": empty_fleet.key}
    api, memory = empty_fleet.find("api"), []

    def weigh():
        memory.append(api.memory_info().rss)

    paths = [ROOT, ROOT / "service" / "client", ROOT / "tests", ROOT / "tests" / "helpers"]
    with load_probes.asked(f"{empty_fleet.url}/livez", 1, weigh):
        found = subprocess.run(
            [
                *(Path(sys.executable).with_name("schemathesis"), "--no-color"),
                *("--config-file", "openapi/schemathesis.toml"),
                *("run", "openapi/openapi.json", "--url", empty_fleet.url, "--checks", "all"),
                *("--seed", SEED, "--max-time", str(SECONDS), "--continue-on-failure"),
                *asks,
            ],
            cwd=ROOT,
            env={**os.environ, **own, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            text=True,
            timeout=BUSY,
            check=False,
        )
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-5000:]
    early, late = memory[len(memory) // 4], memory[-1]
    print(f"T54 memory of the API: {early >> 20} to {late >> 20} MB")
    assert late - early < 60_000_000
    with empty_fleet.client() as client:
        lists = {place: client.get(f"/v1/{place}?limit=200").json()["items"] for place in RUNS}
    begun = {place: len(items) for place, items in lists.items()}
    print(f"T01 {_summary(found.stdout)}; of the latest 200 runs of a kind: {begun}")
    assert min(begun.values()) > 0, f"of a kind none was accepted, or is left: {begun}"


def _summary(text):
    return next(line.strip() for line in text.splitlines() if " generated" in line)
