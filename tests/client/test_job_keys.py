"""prescore gate in a CI job with no key gets one for the job's own token: with a real service."""

import json
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

import prescore
from helpers import ci_tokens, command_app
from helpers.ci_tokens import github, gitlab, signed
from helpers.fleet import bundle
from helpers.service_here import service_here
from prescore.cli import gate as gate_command
from prescore.client import exchange_job_key
from prescore.http import job_tokens
from prescore.http.addresses import Address
from prescore.http.transport import Transport
from service.access import keys
from service.contract.askers import Scope

PASSWORD = "of-the-runner"
GATE = (
    "--gate",
    "bleu_1 >= 0",
    "--dataset",
    "tiny/test",
    "--postgen",
    "bleu_1",
    "--pregen",
    "none",
)


@pytest.fixture(scope="module")
def service(issuers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("of jobs")
    with service_here(folder / "home", jobs=ci_tokens.exchange(issuers, folder)) as service:
        _, text = keys.create_key(service.records, "red", Scope.ADMIN)
        with prescore.Client(service.url, text) as client:
            (folder / "tiny.tar").write_bytes(bundle(12))
            client.add_dataset("tiny", folder / "tiny.tar")
        yield service


class Runner:
    """What GitHub's runner offers to a job: a URL that gives a token to who knows the password."""

    def __init__(self, issuers, **claims):
        self.claims = claims
        self.audiences = []
        self.answer = None  # status and body in the place of a token

        answer = partial(self._answer, issuers)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answer(self)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)

    def _answer(self, issuers, handler):
        asked = parse_qs(urlsplit(handler.path).query)
        assert asked["api-version"] == ["2.0"]
        self.audiences += asked["audience"]
        if self.answer is not None:
            return self.answer
        if handler.headers["Authorization"] != f"Bearer {PASSWORD}":
            return 401, b""
        claims = github(aud=asked["audience"][0], **self.claims)
        return 200, json.dumps({"value": signed(issuers.rsa, claims)}).encode()

    @property
    def variables(self):
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"http://127.0.0.1:{self._server.server_port}/t?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": PASSWORD,
            "PRESCORE_AUDIENCE": ci_tokens.AUDIENCE,
            "GITHUB_SHA": 40 * "a",
            "GITHUB_REF_NAME": "main",
            "GITHUB_RUN_ID": "555",
        }

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


@pytest.fixture
def runner(issuers, monkeypatch):
    with Runner(issuers).serving() as runner:
        for name, value in runner.variables.items():
            monkeypatch.setenv(name, value)
        yield runner


@pytest.fixture
def gate(service, tmp_path):
    path = tmp_path / "said.json"
    path.write_text(json.dumps([{"image": f"{n}.jpg", "caption": "w1 w2"} for n in range(12)]))

    def run(*more, url=service.url):
        words = ("gate", str(path), *GATE, "--url", url, "--patience", "3", "--json", *more)
        return CliRunner().invoke(command_app.prescore(), words)

    return run


def test_a_job_of_github_needs_no_secret(gate, runner):
    result = gate()
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["labels"] == {
        "branch": "main",
        "commit": 40 * "a",
        "run": "555",
    }
    assert runner.audiences == [ci_tokens.AUDIENCE]
    assert PASSWORD not in result.output


def test_a_job_of_gitlab_has_its_token_in_a_variable(gate, issuers, monkeypatch):
    token = signed(issuers.gitlab, gitlab())
    monkeypatch.setenv("PRESCORE_ID_TOKEN", token)
    result = gate()
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["labels"]["run"] == "777"
    result = gate()  # it was exchanged before
    assert result.exit_code == 2
    assert "expected a token of a CI job" in result.stderr
    assert token not in result.output


@pytest.fixture
def ends_early(service, monkeypatch):
    """The first key of a job ends as soon as its run is waited for."""
    given, follow = gate_command.exchange_job_key, gate_command.follow_run
    made, waits = [], []

    def job_key(*at):
        found = given(*at)
        made.append(found)
        if len(made) > 1:
            return found
        return found.model_copy(update={"expires_at": datetime.now(UTC)})

    def followed(*run):
        waits.append(run[2])
        if len(waits) == 1:
            latest, *_ = keys.list_keys(service.records, "red", 1, None)
            keys.revoke_key(service.records, latest.id)  # both are refused alike
        return follow(*run)

    monkeypatch.setattr(gate_command, "exchange_job_key", job_key)
    monkeypatch.setattr(gate_command, "follow_run", followed)
    return made, waits


def test_a_run_that_takes_longer_than_its_key_is_waited_for_with_another(gate, runner, ends_early):
    result = gate("--timeout", "60", "--label", "x=longer")
    assert result.exit_code == 0, result.output
    (first, second), (all_, left) = ends_early
    assert first.key != second.key
    assert first.key.startswith("psk_")
    assert first.key not in repr(first)
    assert runner.audiences == [ci_tokens.AUDIENCE] * 2
    assert 0 < left < all_ == 60
    assert first.key not in result.output
    assert second.key not in result.output


def test_where_there_is_one_token_it_is_said_that_its_key_has_ended(
    gate, issuers, ends_early, monkeypatch
):
    monkeypatch.setenv("PRESCORE_ID_TOKEN", signed(issuers.gitlab, gitlab()))
    result = gate("--label", "x=gitlab")
    assert result.exit_code == 2
    assert "its token is exchanged once; ev_" in result.stderr
    assert "give a key by PRESCORE_KEY" in result.stderr
    assert len(ends_early[0]) == 1


def test_a_key_comes_before_a_token(service, gate, runner, monkeypatch):
    _, text = keys.create_key(service.records, "red", Scope.SUBMIT)
    monkeypatch.setenv("PRESCORE_KEY", text)
    assert gate("--label", "branch=y").exit_code == 0
    assert runner.audiences == []


def test_the_token_is_for_the_services_url_unless_another_audience_is_set(
    service, runner, monkeypatch
):
    monkeypatch.delenv("PRESCORE_AUDIENCE")
    with pytest.raises(prescore.Refused, match="expected a token"):
        exchange_job_key(service.url, 1)
    assert runner.audiences == [service.url]


def test_one_sees_who_one_is_and_an_admin_the_keys_of_the_team(service):
    _, text = keys.create_key(service.records, "red", Scope.ADMIN, name="mine")
    keys.create_key(service.records, "red", Scope.READ, name="yours")
    keys.create_key(service.records, "blue", Scope.READ, name="theirs")
    with prescore.Client(service.url, text) as client:
        me = client.me()
        assert (me.team, me.scope, me.name) == ("red", "admin", "mine")
        listed = list(client.keys(page_size=1))
        assert [one.name for one in listed[:2]] == ["yours", "mine"]
        assert "theirs" not in [one.name for one in listed]
        assert me.key == listed[1].id
        assert listed[1].used_at is not None


def test_a_service_that_is_open_gets_no_token(runner, tmp_path):
    with service_here(tmp_path) as service:
        assert exchange_job_key(service.url, 1) is None
        with prescore.Client(service.url) as client:
            assert (client.me().key, client.me().scope) == (None, "admin")
    assert runner.audiences == []


def test_no_token_goes_where_others_can_read_it(service, runner, monkeypatch):
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", "http://runner.example/t?api-version=2.0")
    with pytest.raises(prescore.InvalidArgument, match="expected an https:// URL in ACTIONS"):
        exchange_job_key(service.url, 1)
    plain = Address.of("http://evaluator.example", None, 1)
    taken = []
    with (
        closing(Transport(plain)) as transport,
        pytest.raises(prescore.InvalidArgument, match="could read it"),
    ):
        job_tokens.exchange_token(transport, lambda: taken.append(1) or "a.b.c")
    assert taken == []


@pytest.mark.parametrize(
    "answer",
    [
        (403, b"sorry"),
        (200, b"null"),
        (200, b'{"value": 5}'),
        (200, b'{"value": "two words"}'),
        (200, b"[" + 70_000 * b" " + b"]"),
        (302, b""),
    ],
)
def test_what_is_no_token_is_told(service, runner, answer):
    runner.answer = answer
    with pytest.raises(prescore.PrescoreClientError, match="token") as raised:
        exchange_job_key(service.url, 1)
    assert PASSWORD not in str(raised.value)
