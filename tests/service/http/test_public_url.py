"""Where people reach the page: told in each answer, and used by the client and its commands."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from helpers import command_app
from helpers.fleet import bundle
from helpers.service_here import service_here
from prescore import Client

PAGES = "https://scores.example.org"
SAID = [{"image": f"{place}.jpg", "caption": "a w1"} for place in range(3)]


@pytest.fixture(scope="module", params=[None, PAGES])
def told(request, tmp_path_factory):
    """A service, and the address of its page."""
    with service_here(tmp_path_factory.mktemp("home"), pages=request.param) as service:
        with service.client() as client:
            client.put("/v1/datasets/three", content=bundle(3))
        yield service, request.param or service.url


def test_answers_tell_it_where_there_is_one(told):
    service, pages = told
    for path in ("/v1/evaluations", "/v1/limits", "/v1/nothing"):
        link = httpx.get(service.url + path).headers.get("Link")
        expected = f'<{PAGES}/ui/>; rel="alternate"; type="text/html"' if pages == PAGES else None
        assert link == expected


def test_the_client_and_its_commands_link_the_page(told, tmp_path, monkeypatch):
    service, pages = told
    said = tmp_path / "said.json"
    said.write_text(json.dumps(SAID))
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    asked = [str(said), "--dataset", "three/test", "--url", service.url, "--postgen", "bleu"]
    submitted = CliRunner().invoke(command_app.prescore(), ["submit", *asked])
    assert f"{pages}/ui/evaluations/{submitted.stdout.strip()}" in submitted.stderr.splitlines()
    gated = CliRunner().invoke(command_app.prescore(), ["gate", *asked, "--gate", "bleu_1 > 0.9"])
    assert gated.exit_code == 1, gated.output
    identity = gated.stdout.split()[0]
    page = f"{pages}/ui/evaluations/{identity}"
    assert page in gated.stderr.splitlines()
    assert f"(<{page}>)" in summary.read_text()
    with Client(service.url) as client:
        assert client.evaluation(identity).url == page
        assert next(client.evaluations()).url.startswith(f"{pages}/ui/evaluations/ev_")
