"""Inputs that are made up, and those kept in `corpus`: README.md tells how one is tried again."""

import os
import time

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings

from fuzz.harnesses import HARNESSES, kept, place_of

SECONDS = float(os.environ.get("PRESCORE_FUZZ_SECONDS", "600"))
ROUND = 500  # inputs, after which hypothesis forgets what it has tried
NAMES = sorted(HARNESSES)
COMMON = settings(
    deadline=None,
    database=None,
    verbosity=Verbosity.quiet,  # an input is shown by the file in which it is kept
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name in NAMES for file in kept(HARNESSES[name].folder)]
)
def test_a_kept_input_is_read_or_refused_within_bounds(name, file):
    harness = HARNESSES[name]
    harness.replayed(kept(harness.folder)[file])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_made_up_is_read_or_refused_within_bounds(name, tmp_path):
    harness = HARNESSES[name]
    try:
        settings(COMMON, max_examples=harness.examples)(given(harness.made())(harness.held))()
    except Exception as error:
        error.add_note(harness.keep(tmp_path))
        raise


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_made_up_for_long_is_read_or_refused_within_bounds(name, tmp_path):
    harness = HARNESSES[name]
    # Few changes make an input, so it is not made smaller: that may take minutes.
    many = settings(COMMON, max_examples=ROUND, derandomize=False, phases=[Phase.generate])
    tried = many(given(harness.made())(harness.held))
    until, rounds, found = time.monotonic() + SECONDS, 0, []
    while time.monotonic() < until:
        rounds += 1
        try:
            tried()
        except Exception as error:  # noqa: BLE001  whatever it is, it is told at the end
            harness.known.add(place_of(error))
            found.append(f"{place_of(error)}: {error!s:.300}\n{harness.keep(tmp_path)}")
            print(found[-1], flush=True)
    print(f"{name}: {rounds} rounds of {ROUND} inputs in {SECONDS:.0f} s")
    harness.known.clear()
    assert not found, (
        "inputs that fail; `sh tests/run.sh -k kept_input` tries those of the corpus again:\n"
        + "\n".join(found)
    )
