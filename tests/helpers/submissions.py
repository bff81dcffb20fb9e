"""Requests over HTTP that many tests of the service make: datasets, evaluations, commands."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from click.testing import Result
from typer.testing import CliRunner

from helpers import command_app, interface
from helpers.contract_files import tar, tar_entry
from helpers.fleet import until, until_ended, upload
from service.access import keys
from service.contract.askers import Scope
from service.engine.service_parts import ServiceParts
from service.http import app
from service.http.dependencies import AppParts

OVER = ("succeeded", "failed", "canceled")


def serve_datasets(serve_here, folders, **bundles: bytes) -> Iterator[Any]:
    """A service in this process with these datasets, as a fixture of a module yields it."""
    with serve_here(folders.mktemp("a home")) as service:
        with service.client() as client:
            for name, content in bundles.items():
                answer = client.put(f"/v1/datasets/{name}", content=content)
                assert answer.status_code == 201, answer.text
        yield service


def add_pictures(client: httpx.Client, name: str, captions: bytes, pictures: Mapping[str, bytes]):
    """The description of a dataset of these lines of captions and these pictures by image."""
    files = [tar_entry(f"images/{image}".encode(), data) for image, data in pictures.items()]
    data = tar(tar_entry(b"captions.jsonl", captions), *files)
    answer = client.put(f"/v1/datasets/{name}", content=data)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def store_checkpoint(client: httpx.Client, content: bytes) -> dict[str, Any]:
    """The description of a checkpoint that was sent, after the tasks that its upload began."""
    return client.get(f"/v1/checkpoints/{upload(client, content)}").json()


def submit(client: httpx.Client, **asked: Any) -> str:
    """The id of an evaluation that was accepted; on `tiny/test` unless told otherwise."""
    answer = client.post("/v1/evaluations", json={"dataset": "tiny/test", **asked})
    assert answer.status_code in (201, 202), answer.text
    return answer.json()["id"]


def evaluate(client: httpx.Client, **asked: Any) -> dict[str, Any]:
    """An evaluation that has succeeded."""
    found = until_ended(client, submit(client, **asked), 60)
    assert found["status"] == "succeeded", found["error"]
    return found


def finish(client: httpx.Client, place: str) -> dict[str, Any]:
    """A run of any kind at its end."""

    def over():
        found = client.get(place).json()
        return found if found["status"] in OVER else None

    return until(over, 60, f"the end of {place}")


def read_pages(client: httpx.Client, place: str, **query: Any) -> Iterator[dict[str, Any]]:
    """The pages of a list, from the first to the last."""
    cursor: str | None = None
    while True:
        answer = client.get(place, params=query if cursor is None else {**query, "cursor": cursor})
        assert answer.status_code == 200, answer.text
        yield answer.json()
        cursor = answer.json()["next"]
        if cursor is None:
            return


def refuse(client: httpx.Client, **asked: Any) -> dict[str, Any]:
    """The problem of an evaluation that is refused with 422."""
    answer = client.post("/v1/evaluations", json={"dataset": "tiny/test", **asked})
    assert answer.status_code == 422, answer.text
    return answer.json()


def ask_application(parts: ServiceParts, method: str, path: str, content=None) -> httpx.Response:
    """The answer of an application on these parts, without a server; it is as documented."""
    application = app.create_app(AppParts.on(parts))
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)

    async def ask():
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, content=content)

    answer = asyncio.run(ask())
    interface.check(answer)
    return answer


def run_command(service, *arguments: object, code: int = 0) -> Result:
    """What `prescore` prints, of a command that exits with this code."""
    given = [*map(str, arguments), "--url", service.url, "--patience", "0"]
    result = CliRunner().invoke(command_app.prescore(), given)
    assert result.exit_code == code, result.output
    return result


def client_of_team(service, team: str, scope: Scope = Scope.ADMIN) -> httpx.Client:
    """A client with a key of this team; close it."""
    key = keys.create_key(service.records, team, scope)[1]
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=service.url, headers=headers, timeout=60)
