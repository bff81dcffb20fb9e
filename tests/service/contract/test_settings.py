"""Settings from the environment: frozen, few, and refused by the variable's name."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from helpers.contract_files import refused
from service.contract import settings
from service.contract.errors import InvalidSetting


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    for name in os.environ:
        if name.upper().startswith("PRESCORE_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("variables", [{}, {"PRESCORE_HOME": "", "PRESCORE_DEVICE": ""}])
def test_without_variables_the_defaults_hold(monkeypatch, tmp_path, variables):
    """Compose files write an empty one; an empty PRESCORE_HOME would be the working directory."""
    for name, text in {"HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, text)
    found = settings.load_settings()
    assert found.home == tmp_path / ".local" / "share" / "prescore"
    assert found.device == "auto"


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda:0", "cuda:15"])
def test_variables_are_read(monkeypatch, device):
    monkeypatch.setenv("PRESCORE_HOME", "/srv/prescore")
    monkeypatch.setenv("PRESCORE_DEVICE", device)
    found = settings.load_settings()
    assert (found.home, found.device) == (Path("/srv/prescore"), device)


@pytest.mark.parametrize(
    "device",
    ["gpu", "cuda", "cuda:", "cuda:-1", "cuda:0,1", "CPU", "cpu ", "cpu\n", "cuda:١", "x" * 99],
)
def test_a_device_that_is_none_is_refused_by_the_variables_name(monkeypatch, device):
    monkeypatch.setenv("PRESCORE_DEVICE", device)
    words = ("PRESCORE_DEVICE", "expected auto, cpu or cuda:N", f", found {device!r}")
    refused(settings.load_settings, InvalidSetting, *words)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("public_url", "https://scores.example.org/", "https://scores.example.org"),
        ("public_url", "http://scores:8000", "http://scores:8000"),
        ("public_url", "https://[::1]:8443", "https://[::1]:8443"),
        ("blob_public_url", "https://s3.example.org:9000/", "https://s3.example.org:9000"),
    ],
)
def test_where_people_and_clients_come_is_an_address_alone(monkeypatch, name, given, kept):
    monkeypatch.setenv(f"PRESCORE_{name.upper()}", given)
    assert getattr(settings.load_settings(), name) == kept


NO_URLS = ["s3.example.org", "ftp://s3.example.org", "https://", "https://s3.example.org/bucket"]
NO_URLS += ["https://s3.example.org?x=1", "https://user:hidden@s3.example.org", "https://s3.org\n"]
NO_PAGES = ["https://a.org|evil", "https://a.org:999999", f"https://{'s' * 300}.org"]


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        *(("PRESCORE_PUBLIC_URL", url) for url in (*NO_URLS, *NO_PAGES)),
        *(("PRESCORE_BLOB_PUBLIC_URL", url) for url in NO_URLS),
    ],
)
def test_a_url_that_cannot_be_told_is_refused_without_its_password(monkeypatch, variable, url):
    monkeypatch.setenv(variable, url)
    with pytest.raises(InvalidSetting, match=rf"{variable}: .*expected a URL") as caught:
        settings.load_settings()
    assert "hidden" not in str(caught.value)


def test_variables_that_are_not_settings_are_passed_over(monkeypatch):
    monkeypatch.setenv("PRESCORE_COLOUR", "red")
    monkeypatch.setenv("DEVICE", "gpu")
    assert settings.load_settings().device == "auto"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without a home")
def test_a_user_without_a_home_is_told_which_variable_to_set():
    code = (
        "from service.contract import errors, settings; import os; os.setuid(54321)\n"
        "try: settings.load_settings()\n"
        "except errors.InvalidSetting as error: print(error)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("PRESCORE_HOME: expected a folder"), result.stderr


def test_settings_are_handed_on_by_stdin_and_nothing_of_them_by_the_environment(monkeypatch):
    monkeypatch.setenv("PRESCORE_DATABASE_URL", "postgresql://u:one-secret@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    monkeypatch.setenv("PRESCORE_NOT_OURS", "1")
    chosen = settings.load_settings()
    environment, handed = settings.export_settings(chosen)
    assert "secret" not in " ".join(environment.values())
    assert environment["PRESCORE_NOT_OURS"] == "1"
    code = (
        "import os; from service.contract.settings import load_settings; found = load_settings();"
        "print(found.model_dump_json()); print(os.environ['AWS_SECRET_ACCESS_KEY'])"
    )
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, env=environment, input=handed, capture_output=True, check=True)
    assert child.stdout.decode().split() == [chosen.model_dump_json(), "another-secret"]


@pytest.mark.parametrize(
    ("told", "share"),
    [
        ({}, 0.75),  # no container
        ({"memory.max": "max\n"}, 0.75),
        ({"memory.max": "2000000000\n"}, 1_500_000_000),
        ({"limit_in_bytes": "2000000000\n"}, 1_500_000_000),
        ({"limit_in_bytes": f"{2**63 - 4096}\n"}, 0.75),  # what a container without a limit has
    ],
)
def test_tasks_may_take_three_quarters_of_what_there_is(monkeypatch, tmp_path, told, share):
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    places = (tmp_path / "memory.max", tmp_path / "limit_in_bytes")
    monkeypatch.setattr(settings, "_CONTAINER_LIMITS", places)
    there = psutil.virtual_memory().total
    expected = share * there if share < 1 else share
    assert settings.Settings().task_memory == pytest.approx(expected, rel=1e-3)
    assert settings.Settings(task_memory_mb=200).task_memory == 200_000_000
