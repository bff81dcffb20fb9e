"""What the engine says of this machine; the whole of it is in tests/service/test_doctor.py."""

from dataclasses import replace

import pytest
import torch

from helpers import converters, plugin_packages
from service.contract import settings
from service.kernel import landlock
from service.kernel.confinement import MECHANISMS
from workers.offline import doctor
from workers.sandbox import operations


def test_a_device_that_is_not_there_is_told_with_those_there_are():
    found = doctor._devices(f"cuda:{torch.cuda.device_count()}")
    assert (found.status, found.needed) == ("unavailable", True)
    assert f"{torch.get_num_threads()} threads" in found.found
    assert f"this machine has {torch.cuda.device_count()} CUDA devices" in found.found


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_cuda_device_it_says_why():
    found = doctor._devices("auto")
    assert found.status == "ok"
    assert "no CUDA device: " in found.found
    assert found.found.endswith("models run on cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_devices_are_named_with_their_memory():
    found = doctor._devices("auto")
    assert torch.cuda.get_device_name(0) in found.found
    assert found.found.endswith("models run on cuda:0")


def test_a_torch_without_onednn_is_a_warning(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert doctor._products().status == "warning"


@pytest.mark.processes
def test_the_sandbox_is_tried_by_a_child_in_it(needs_sandbox):
    (found,) = doctor._sandbox("required")
    assert found.status == "ok"
    assert (
        f"Landlock {landlock.read_landlock_version()} and seccomp; a child starts in" in found.found
    )


def test_a_machine_without_a_sandbox_is_told_with_what_it_lacks(monkeypatch):
    monkeypatch.setattr(landlock, "read_landlock_version", lambda: 3)
    (found,) = doctor._sandbox("required")
    assert (found.status, found.needed) == ("unavailable", False)
    assert "Landlock has version 3" in found.found
    assert "Linux 6.7" in found.advice


@pytest.mark.processes
def test_a_sandbox_that_does_not_hold_is_told(monkeypatch):
    def open_run(operation, inputs, outputs, parameters=None, *, limits):
        return run(operation, inputs, outputs, limits=limits, without=MECHANISMS)

    run = operations.run_operation
    monkeypatch.setattr(operations, "run_operation", open_run)
    (found,) = doctor._sandbox("required")
    assert found.status == "unavailable"
    for each in ("files", "the network", "other processes", "programs"):
        assert each in found.found


def test_a_warm_child_that_is_not_confined_is_told(needs_sandbox, monkeypatch, tmp_path):
    monkeypatch.setattr("workers.runtime.child._NVIDIA", tmp_path)
    held, warned = doctor._sandbox("required")
    assert (held.status, warned.status) == ("ok", "warning")
    assert "not confined: this machine has NVIDIA's driver" in warned.found


def test_a_sandbox_that_is_switched_off_is_a_warning():
    (found,) = doctor._sandbox("off")
    assert found.status == "warning"
    assert "PRESCORE_SANDBOX=required" in found.advice


def _converter(place):
    (found,) = doctor._converter(place)
    assert (found.name, found.needed) == ("converter", False)
    return found


@pytest.mark.processes
@pytest.mark.slow
def test_a_converter_is_asked_and_the_sandbox_tried_there(needs_sandbox, tmp_path):
    assert _converter(None).status == "ok"
    with converters.running(tmp_path) as running:
        found = _converter(running.socket)
        assert (found.status, found.found.startswith(f"{running.socket}: ")) == ("ok", True)
        assert f"Landlock {landlock.read_landlock_version()} and seccomp" in found.found
        running.kill()
        found = _converter(running.socket)
        assert found.status == "unavailable"
        assert f"no converter answers at {running.socket}" in found.found
        assert "prescore worker converter" in found.advice


@pytest.mark.parametrize(
    ("limit", "status", "found"),
    [("1500000000\n", "warning", "of 1.5 GB"), ("max\n", "ok", "GB"), (None, "ok", "GB")],
)
def test_the_memory_of_a_container_is_its_limit(tmp_path, monkeypatch, limit, status, found):
    monkeypatch.setattr(doctor, "_CONTAINER", tmp_path / "memory.max")
    monkeypatch.setattr(doctor, "_LITTLE_MEMORY", 1.6e9 if limit == "1500000000\n" else 0)
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    (memory,) = doctor._memory()
    assert memory.status == status
    assert found in memory.found


def test_plug_ins_are_listed_with_package_and_version_and_broken_ones_are_told(tmp_path):
    (none,) = doctor._plugins()
    assert (none.name, none.status, none.found) == ("plug-ins", "ok", "none is installed")
    plugin_packages.install(tmp_path)
    with plugin_packages.beside(tmp_path):
        (usable,) = doctor._plugins()
    assert (usable.name, usable.status) == ("plug-in show-and-tell", "ok")
    assert usable.found == "acme-captioners 1.0"
    broken = tmp_path / "broken"
    plugin_packages.install(broken, package="odd", entry="A B = acme_captioners:build")
    plugin_packages.install(broken, code="import not_there")
    with plugin_packages.beside(broken):
        found = {finding.name: finding for finding in doctor._plugins()}
    assert {finding.status for finding in found.values()} == {"warning"}
    assert not any(finding.needed for finding in found.values())
    assert (
        "ModuleNotFoundError: No module named 'not_there'" in found["plug-in show-and-tell"].found
    )
    assert "expected a name" in found["plug-in 'A B'"].found


@pytest.mark.processes
def test_what_is_recommended_is_told_where_it_is_missing_and_where_it_answers(
    monkeypatch, tmp_path
):
    """`rouge_l` answers without Java and files; the others need what nobody brought."""
    kept = {name: doctor.FAMILIES[name] for name in ("rouge_l", "wmd_unit", "bertscore", "wmd")}
    kept["rouge_l"] = replace(kept["rouge_l"], advice="recommended here")
    monkeypatch.setattr(doctor, "FAMILIES", kept)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path))
    monkeypatch.delenv("PRESCORE_ASSETS", raising=False)
    found = {each.name: each for each in doctor._metrics(settings.load_settings())}
    assert found["wmd_unit"].status == found["bertscore"].status == "unavailable"
    assert found["wmd_unit"].advice.startswith("recommended: ")
    assert "prescore assets add minilm" in found["bertscore"].advice
    assert found["wmd"].advice == ""
    assert "recommended here" in found["rouge_l"].advice
