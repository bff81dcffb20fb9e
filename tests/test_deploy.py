"""What runs a fleet in containers, judged as far as it can be without building one."""

import hashlib
import json
import re
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from typer.testing import CliRunner

from prescore import commands
from service.contract.settings import Settings

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
GPU = yaml.safe_load((DEPLOY / "compose.gpu.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
WORKERS = ["inference", "metrics"]
PIECES = ["api", "janitor", "worker"]  # users of Redis
AT_HOME = [name for name in OURS if name != "converter"]
SOCKET = "/run/prescore/converter"
DOCKERFILES = sorted(DEPLOY.glob("*.Dockerfile"))
WRITTEN = [*DOCKERFILES, *DEPLOY.glob("compose*.yaml"), DEPLOY / "secrets.sh", DEPLOY / "redis.acl"]


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = dockerfile.read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def _dockerfile(name: str) -> Path:
    build = SERVICES[name]["build"]
    return (DEPLOY / build["context"] / build["dockerfile"]).resolve()


def _sent_to_a_build(path: str) -> bool:
    """By .dockerignore, which excludes all and then names what is sent."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines
    sent = [line.removeprefix("!") for line in lines if line.startswith("!")]
    return any(path == name or path.startswith(f"{name}/") for name in sent)


def _draw(folder: Path) -> dict[str, str]:
    subprocess.run(["sh", DEPLOY / "secrets.sh", folder], check=True)
    return _variables(folder, "worker")


def _variables(folder: Path, piece: str) -> dict[str, str]:
    lines = (folder / f"{piece}.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_of_ours(name):
    """--help comes last: an option that is not known is refused before it."""
    command = [*SERVICES[name]["command"], "--help"]
    result = CliRunner().invoke(commands.build(), command, prog_name="prescore")
    assert result.exit_code == 0, result.output
    assert f"Usage: prescore {SERVICES[name]['command'][0]}" in result.stdout
    assert "Not installed" not in result.stdout


@pytest.mark.parametrize("name", AT_HOME)
def test_every_piece_waits_for_what_it_needs(name):
    needed = {"postgres": "service_healthy"}
    if name in WORKERS:
        needed["converter"] = "service_healthy"
    if name != "migrate":
        needed |= {"redis": "service_healthy", "migrate": "service_completed_successfully"}
    found = SERVICES[name]["depends_on"]
    assert {other: found[other]["condition"] for other in found} == needed


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_every_variable_is_a_setting(path):
    settings = {f"PRESCORE_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"PRESCORE_[A-Z_]+", path.read_text(encoding="utf-8")))
    assert named <= settings


@pytest.mark.parametrize("name", SERVICES)
def test_containers_are_locked(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "ipc"} & set(service)
    assert service.get("network_mode") == ("none" if name == "converter" else None)
    user = service["user"] if name not in OURS else dict(_instructions(_dockerfile(name)))["USER"]
    assert user.split(":")[0] not in ("0", "root")


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_to_a_tag(name):
    tag = SERVICES[name]["image"].partition(":")[2]
    assert tag not in ("", "latest")
    if name in OURS:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert tag == project["version"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles_copy_what_exists_and_start_without_a_shell(path):
    instructions = _instructions(path)
    stages = [rest.split() for name, rest in instructions if name == "FROM"]
    assert {words[0] for words in stages} == {"${PYTHON}"}
    assert instructions[0] == ("ARG", "PYTHON=python:3.11-slim")
    copied = [rest.split()[:-1] for name, rest in instructions if name == "COPY"]
    sources = [source for words in copied for source in words if not words[0].startswith("--from")]
    assert len(sources) >= 5
    for source in sources:
        assert (ROOT / source).exists(), source
        assert _sent_to_a_build(source), source
    started = [json.loads(rest) for name, rest in instructions if name in ("ENTRYPOINT", "CMD")]
    assert started[0] == ["prescore"]
    assert "ADD" not in dict(instructions)


def test_only_the_api_is_reached_and_only_from_this_machine():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:8000:8000"]}
    assert SERVICES["api"]["command"] == ["api", "--host", "0.0.0.0"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    others = set(SERVICES) - {"api", "janitor", "converter"}
    assert all(SERVICES[name]["networks"] == ["inside"] for name in others)
    assert SERVICES["janitor"]["networks"] == ["inside", "outside"]  # it sends webhooks


def test_the_converter_has_no_network_no_secrets_no_home_and_limits():
    """So that whoever gets out of the sandbox finds nothing there."""
    found = SERVICES["converter"]
    assert found["network_mode"] == "none"
    assert not {"networks", "env_file", "environment", "secrets", "ports", "depends_on"} & {*found}
    assert found["volumes"] == ["converter:/run/prescore"]
    assert found["mem_limit"] == found["memswap_limit"]
    assert found["pids_limit"] <= 1000
    assert found["image"] == SERVICES["inference"]["image"]  # the same code and the same user


def test_the_converters_socket_is_shared_with_the_workers_alone():
    having = {name for name in SERVICES if "converter:" in str(SERVICES[name].get("volumes"))}
    assert having == {"converter", *WORKERS}
    for name in WORKERS:
        assert SERVICES[name]["environment"]["PRESCORE_CONVERTER"] == SOCKET
    (made,) = [
        rest
        for kind, rest in _instructions(_dockerfile("converter"))
        if kind == "RUN" and str(Path(SOCKET).parent) in rest
    ]
    assert "install -d -o prescore -g prescore -m 700" in made  # a new volume takes this over
    check = SERVICES["converter"]["healthcheck"]["test"]
    assert SOCKET in check[-1]
    assert SOCKET in SERVICES["converter"]["command"]


@pytest.mark.parametrize("name", AT_HOME)
def test_all_pieces_share_one_home(name):
    (mounted,) = [each for each in SERVICES[name]["volumes"] if "converter" not in each]
    homes = [rest for kind, rest in _instructions(_dockerfile(name)) if kind == "ENV"]
    assert mounted.startswith("home:")
    assert mounted.replace("home:", "PRESCORE_HOME=") in homes


def test_redis_forgets_nothing():
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--aclfile"] == f"/run/secrets/{SERVICES['redis']['secrets'][0]}"


def test_a_gpu_is_reserved_for_inference_alone():
    (changed,) = GPU["services"].values()
    assert set(GPU["services"]) == {"inference"}
    devices = changed["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert Settings(device=changed["environment"]["PRESCORE_DEVICE"])


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_no_password_is_committed_or_on_a_command_line(path):
    """A password is a hash or a > in rules, the part before @ in a URL, an option of Redis."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r" [#>][0-9A-Za-z]|://[^\s@$]+@|requirepass|PASSWORD[:=]", text)


def test_what_holds_passwords_is_neither_committed_nor_sent_to_a_build():
    files = [secret["file"] for secret in COMPOSE["secrets"].values()]
    files += [file for name in AT_HOME for file in SERVICES[name]["env_file"]]
    for file in files:
        asked = ["git", "check-ignore", "--quiet", DEPLOY / file]
        assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0
        assert not _sent_to_a_build(f"deploy/{file}")


def test_each_piece_knows_its_own_user_of_redis_and_role_of_postgresql_and_no_other():
    """A worker runs what is asked of it; with the API's user it could not take what others get."""
    files = {name: SERVICES[name]["env_file"] for name in AT_HOME}
    worker, api = ["secrets/worker.env"], ["secrets/api.env"]
    assert files == {
        "migrate": ["secrets/migrate.env"],
        "api": api,
        "janitor": ["secrets/janitor.env"],
        "inference": worker,
        "metrics": worker,
    }


def test_passwords_are_drawn_anew_and_not_overwritten(tmp_path):
    first, second = _draw(tmp_path / "first"), _draw(tmp_path / "second")
    assert not set(first.values()) & set(second.values())
    again = subprocess.run(
        ["sh", DEPLOY / "secrets.sh", tmp_path / "first"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode != 0
    assert str(tmp_path / "first") in again.stderr
    assert first["PRESCORE_REDIS_URL"] in (tmp_path / "first" / "worker.env").read_text()


def test_passwords_fit_together_and_are_kept_from_others(tmp_path):
    folder = tmp_path / "secrets"
    drawn = _draw(folder)
    expected = (DEPLOY / "redis.acl").read_text(encoding="utf-8")
    urls = [urlsplit(_variables(folder, piece)["PRESCORE_REDIS_URL"]) for piece in PIECES]
    assert len({url.password for url in urls}) == len(PIECES)
    for piece, redis_url in zip(PIECES, urls, strict=True):
        assert redis_url.username == piece
        hashed = hashlib.sha256(redis_url.password.encode()).hexdigest()
        expected = expected.replace(f"user {piece} on ", f"user {piece} on #{hashed} ")
    assert (folder / "redis.acl").read_text(encoding="utf-8") == expected
    roles = (folder / "roles.sql").read_text(encoding="utf-8").splitlines()
    environment = SERVICES["postgres"]["environment"]
    for piece, role in zip(PIECES, roles, strict=True):
        url = urlsplit(_variables(folder, piece)["PRESCORE_DATABASE_URL"])
        assert role == f"CREATE ROLE prescore_{piece} LOGIN PASSWORD '{url.password}';"
        assert url.username == f"prescore_{piece}"
    owner = urlsplit(_variables(folder, "migrate")["PRESCORE_DATABASE_URL"])
    assert (folder / "postgres_password").read_text(encoding="utf-8") == owner.password
    assert owner.username == environment["POSTGRES_USER"]
    for url in (owner, urlsplit(drawn["PRESCORE_DATABASE_URL"])):
        assert url.hostname == "postgres"
        assert url.path == f"/{environment['POSTGRES_DB']}"
    assert {each.hostname for each in urls} == {"redis"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_docker_compose_reads_both_files(tmp_path):
    if (
        shutil.which("docker") is None
        or subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no docker compose on this machine")
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("secrets"))
    _draw(tmp_path / "deploy" / "secrets")
    files = ["-f", "deploy/compose.yaml", "-f", "deploy/compose.gpu.yaml"]
    command = ["docker", "compose", *files, "config", "--quiet"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_operators_page_says_how_to_start_the_fleet():
    page = (DEPLOY / "README.md").read_text(encoding="utf-8")
    for path in (DEPLOY / "compose.yaml", DEPLOY / "compose.gpu.yaml"):
        commands = re.findall(r"^# {3}(\S.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert commands
        assert all(command in page for command in commands)
