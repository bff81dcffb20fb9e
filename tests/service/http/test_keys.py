"""Keys over HTTP (T48): who may ask what, and that what others have looks absent."""

import asyncio
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import sqlalchemy as sa

from helpers import interface
from helpers.fleet import bundle, checkpoint, digest, tus_creation, tus_part, until
from service.access import keys
from service.contract.api.analyses import ProbesRequest
from service.contract.askers import Asker, Scope
from service.engine.tables import keys as rows
from service.engine.tables import runs
from service.http.app import create_app
from service.http.routers import evaluations
from service.runs import probes

GOLDEN = Path(__file__).with_name("access.json")
OWN = ("read", "submit", "publish", "admin")
OPEN_TO_ALL = ("/v1/limits", "/v1/keys/oidc")
READING = ("POST /v1/inspections",)  # by a body, and nothing changes
NOT_VALID = ("none", "wrong", "mistyped", "expired", "revoked")
CAPTIONS = [{"image": f"{n}.jpg", "caption": "w1 w2"} for n in range(12)]
ASKED = {"dataset": "tiny/test", "captions": CAPTIONS, "postgen": ["bleu_1"]}
PROBED = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["bleu_1"]}


class TwoTeams:
    """A service with keys of two teams; red has a run of each usual kind, and uploads."""

    def __init__(self, service):
        self.service = service
        self._kept = {}
        records = service.records
        made = {scope: keys.create_key(records, "red", Scope(scope)) for scope in OWN}
        made["other"] = keys.create_key(records, "blue", Scope.ADMIN)
        made["expired"] = keys.create_key(records, "red", Scope.ADMIN, seconds=0.0)
        made["revoked"] = keys.create_key(records, "red", Scope.ADMIN)
        keys.revoke_key(records, made["revoked"][0].id)
        self.ids = {name: key.id for name, (key, _) in made.items()}
        self.texts = {name: text for name, (_, text) in made.items()}
        self.texts["wrong"] = _other_secret(self.texts["admin"])
        self.texts["mistyped"] = self.texts["admin"][:-1]
        self.places = self._fill()

    def client(self, name):
        return self.client_of(self.texts.get(name))

    def client_of(self, text):
        own = {} if text is None else {"Authorization": f"Bearer {text}"}
        return httpx.Client(base_url=self.service.url, headers=own, timeout=60)

    def kept(self, name):
        """A client that is used again, since a new one takes as long as ten requests."""
        if name not in self._kept:
            self._kept[name] = self.client(name)
        return self._kept[name]

    def close(self):
        for client in self._kept.values():
            client.close()

    def _fill(self):
        """Places of things that red has, by the parameter of a path."""
        data = checkpoint(seed=5)
        with self.client("admin") as client:
            _ok(client.put("/v1/datasets/tiny", content=bundle(12)))
            _ok(client.put(f"/v1/checkpoints/{digest(data)}", content=data))
            labelled = {**ASKED, "labels": {"a": "b"}}
            run = _ok(client.post("/v1/evaluations", json=labelled)).json()["id"]
            again = _ok(client.post("/v1/evaluations", json=ASKED)).json()["id"]
            pair = {"a": run, "b": again, "metrics": ["bleu_1"]}
            comparison = _ok(client.post("/v1/comparisons", json=pair)).json()["id"]
            probes = _ok(client.post("/v1/probes", json=PROBED)).json()["id"]
            told = {"kind": "checkpoint", "digest": digest(b"x" * 9)}
            begun = client.post("/v1/uploads", headers=tus_creation(9, **told))
            hook = {"url": "https://example.org/x", "events": ["run.succeeded"]}
            webhook = _ok(client.post("/v1/webhooks", json=hook)).json()["id"]
        return {
            "evaluations": run,
            "comparisons": comparison,
            "probes": probes,
            "learned": "lm_" + 24 * "a",
            "studies": "st_" + 24 * "a",
            "checkpoints": digest(data),
            "columns": digest(b"none"),
            "datasets": "tiny",
            "uploads": begun.headers["location"].rpartition("/")[2],
            "webhooks": webhook,
        }


def _ok(answer):
    assert answer.is_success, answer.text
    return answer


def _other_secret(text):
    """A well-formed key with the id of this one."""
    identity, random = text.split("_")[1], 43 * "A"
    return f"psk_{identity}_{random}{keys._checksum(identity, random)}"


@pytest.fixture(scope="module")
def teams(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("of teams")) as service:
        made = TwoTeams(service)
        yield made
        made.close()


_GHOSTS = {
    "evaluations": "ev_" + 24 * "z",
    "comparisons": "cp_" + 24 * "z",
    "probes": "pr_" + 24 * "z",
    "learned": "lm_" + 24 * "z",
    "studies": "st_" + 24 * "z",
    "checkpoints": digest(b"a ghost"),
    "columns": digest(b"a ghost"),
    "datasets": "ghost",
    "uploads": "up_" + 32 * "z",
    "webhooks": "wh_" + 24 * "z",
}


def _path(template, places):
    """The path with its parameters filled: with red's things, or with what is nobody's."""
    parts = template.split("/")
    collection = parts[2] if len(parts) > 2 else ""
    names = {"{image}": "0.jpg"}
    return "/".join(
        names.get(part, places[collection]) if part.startswith("{") else part for part in parts
    )


def _status(teams, asker, method, template):
    """A deletion by red is of what is not there, so that the others find what they ask for."""
    is_red = asker in OWN
    places = _GHOSTS if method == "DELETE" and is_red else teams.places
    # No body: what passes is refused for that, so that nothing is changed.
    with teams.kept(asker).stream(method, _path(template, places)) as answer:
        return answer.status_code


def test_every_route_answers_each_asker_as_the_table_says(teams):
    """Regenerate with PRESCORE_WRITE_GOLDEN=1 after a route was added, and read the difference."""
    askers = (*NOT_VALID, *OWN, "other")
    found = {}
    for method, template, _ in interface.operations():
        answers = {asker: _status(teams, asker, method, template) for asker in askers}
        found[f"{method} {template}"] = " ".join(f"{at} {code}" for at, code in answers.items())
    if os.environ.get("PRESCORE_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(GOLDEN.read_text())


def test_the_table_is_what_was_meant():
    """Rules that hold for each row, whoever has written the table."""
    for route, text in json.loads(GOLDEN.read_text()).items():
        pairs = text.split()
        codes = dict(zip(pairs[::2], map(int, pairs[1::2]), strict=True))
        if codes["none"] == 401:
            assert {codes[name] for name in NOT_VALID} == {401}, route
        else:
            is_open = route.split()[1] in ("/livez", "/readyz", "/metrics", *OPEN_TO_ALL)
            assert is_open or route.startswith("OPTIONS"), route
        if route == "POST /v1/keys/oidc":  # its body says who asks
            continue
        allowed = [codes[name] not in (401, 403) for name in OWN]
        assert allowed == sorted(allowed), route  # each scope includes those before it
        assert allowed[-1], route
        is_change = route.split()[0] not in ("GET", "HEAD", "OPTIONS") and route not in READING
        assert not (is_change and allowed[0]), route
        names_one = "{" in route
        if names_one and not route.startswith(("PUT", "OPTIONS")):
            assert codes["other"] in (404, 412, 415, 422), route


def test_what_others_have_is_absent_as_what_nobody_has(teams):
    """The same words, but for the name that was asked for."""
    with teams.client("other") as client:
        for method, template, _ in interface.operations():
            if method != "GET" or "{" not in template:
                continue
            theirs, nobodys = (
                client.get(_path(template, places)) for places in (teams.places, _GHOSTS)
            )
            assert theirs.status_code == nobodys.status_code == 404, template
            assert _unnamed(theirs, teams.places) == _unnamed(nobodys, _GHOSTS), template


def _unnamed(answer, places):
    said = answer.json()
    text = json.dumps({**said, "request_id": ""})
    for name in sorted(places.values(), key=len, reverse=True):
        text = text.replace(name, "NAME")
    return text


def test_lists_boards_and_the_audit_show_a_teams_own(teams):
    with teams.client("other") as client:
        lists = (
            "evaluations",
            "comparisons",
            "probes",
            "datasets",
            "uploads",
            "webhooks",
            "labels",
        )
        for place in lists:
            assert client.get(f"/v1/{place}").json()["items"] == [], place
        seen = {entry["team"] for entry in client.get("/v1/audit").json()["items"]}
    assert seen <= {"blue"}


def test_an_admin_sees_the_keys_of_the_team_and_no_text_of_one(teams):
    with teams.client("admin") as client:
        whole = client.get("/v1/keys").json()["items"]
        first = client.get("/v1/keys?limit=2").json()
        second = client.get("/v1/keys", params={"limit": 2, "cursor": first["next"]}).json()
        text = client.get("/v1/keys").text
    assert {each["id"] for each in whole} == set(teams.ids.values()) - {teams.ids["other"]}
    assert first["items"] + second["items"] == whole[:4]
    times = [each["created_at"] for each in whole]
    assert times == sorted(times, reverse=True)
    told = {each["id"]: each for each in whole}
    assert told[teams.ids["revoked"]]["revoked_at"] is not None
    assert told[teams.ids["read"]]["scope"] == "read"
    assert not [each for each in teams.texts.values() if each.split("_")[2] in text]
    with teams.client("other") as client:
        (only,) = client.get("/v1/keys").json()["items"]
    assert only["id"] == teams.ids["other"]


def test_a_team_brings_its_own_bytes_and_its_own_versions(teams):
    data = checkpoint(seed=5)  # red's
    place = f"/v1/checkpoints/{digest(data)}"
    with teams.client("other") as client:
        assert client.head(place).status_code == 404
        wrong = client.put(place, content=data[:-1] + b"x")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "digest_mismatch")
        assert client.head(place).status_code == 404
        assert client.put(place, content=data).status_code == 201
        assert client.put(place, content=data).status_code == 200
        assert client.put("/v1/datasets/tiny", content=bundle(12)).status_code == 201
        assert client.get("/v1/datasets/tiny").json()["version"] == "v1"
        described = client.get(place).json()
        assert described["cached"] == []
        mine = _ok(client.post("/v1/evaluations", json=ASKED)).json()
        assert mine["status"] == "succeeded"
        assert [task["cached"] for task in mine["tasks"]] == [False] * len(mine["tasks"])
        board = client.get("/v1/datasets/tiny/leaderboard", params={"metric": "bleu_1"}).json()
        assert [item["evaluation"] for item in board["items"]] == [mine["id"]]
        again = _ok(client.post("/v1/evaluations", json=ASKED)).json()
        assert all(task["cached"] for task in again["tasks"])
        # What one team deletes stays another's.
        for run in (mine["id"], again["id"]):
            assert client.delete(f"/v1/evaluations/{run}").status_code == 204
        assert client.delete(place).status_code == 204
        assert client.delete("/v1/datasets/tiny").status_code == 204
        assert client.head(place).status_code == 404
    with teams.client("read") as client:
        assert client.head(place).status_code == 200
        assert client.get("/v1/datasets/tiny").status_code == 200
        assert client.get(f"/v1/evaluations/{teams.places['evaluations']}").status_code == 200


def test_an_idempotency_key_belongs_to_a_key(teams):
    headers = {"Idempotency-Key": "the-same"}
    with teams.client("submit") as one, teams.client("publish") as two:
        first, second = (
            _ok(at.post("/v1/evaluations", json=ASKED, headers=headers)) for at in (one, one)
        )
        third = _ok(two.post("/v1/evaluations", json=ASKED, headers=headers))
    assert first.json()["id"] == second.json()["id"] != third.json()["id"]


def test_a_run_is_of_the_turn_of_its_key(teams):
    with teams.client("submit") as client:
        identity = _ok(client.post("/v1/evaluations", json=ASKED)).json()["id"]
    with teams.service.records.reading() as connection:
        row = connection.execute(sa.select(runs).where(runs.c.id == identity)).one()
    assert (row.team, row.caller) == ("red", f"red/{teams.ids['submit']}")


def test_a_protected_label_needs_the_scope_publish(teams):
    on_main = {**ASKED, "labels": {"branch": "main"}}
    with teams.client("submit") as client, teams.client("publish") as publisher:
        refused = client.post("/v1/evaluations", json=on_main)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert refused.json()["errors"][0]["pointer"] == "/labels/branch"
        mine = _ok(client.post("/v1/evaluations", json={**ASKED, "labels": {"branch": "x"}}))
        place = f"/v1/evaluations/{mine.json()['id']}"
        to_main = client.patch(place, json={"labels": {"branch": "main"}})
        assert to_main.status_code == 403
        assert client.patch(place, json={"labels": {"branch": "y"}}).status_code == 200
        theirs = _ok(publisher.post("/v1/evaluations", json=on_main)).json()["id"]
        place = f"/v1/evaluations/{theirs}"
        for change in ({"branch": None}, {"branch": "y"}):
            assert client.patch(place, json={"labels": change}).status_code == 403
        assert client.patch(place, json={"labels": {"other": "z"}}).status_code == 200
        assert client.patch(place, json={"note": "seen"}).status_code == 200
        assert client.delete(place).status_code == 403
        assert publisher.delete(place).status_code == 204


def test_probes_of_who_may_not_publish_are_no_health(teams):
    """Begun, not performed: the usual probes take a while."""
    told = {}
    for scope in (Scope.SUBMIT, Scope.PUBLISH):
        parts = teams.service.parts.asked_by(Asker("red", scope, "some key"))
        run = probes.begin_probes(parts, ProbesRequest(dataset="tiny/test"))
        codes = [warning["code"] for warning in run.warnings]
        told[scope] = (
            "not_for_health" in codes,
            any(name.startswith("probed ") for name in run.labels),
        )
    assert told == {Scope.SUBMIT: (True, False), Scope.PUBLISH: (False, True)}


@pytest.mark.parametrize(
    "own",
    [
        {"probes": ["human"]},
        {"options": {"objective": "rouge_l"}},
        {"tokenizer": "none"},
        {"captions": CAPTIONS},
    ],
)
def test_probes_that_are_asked_for_otherwise_than_usual_are_no_health(teams, own):
    parts = teams.service.parts.asked_by(Asker("red", Scope.PUBLISH, "some key"))
    run = probes.begin_probes(parts, ProbesRequest(dataset="tiny/test", **own))
    assert not any(name.startswith("probed ") for name in run.labels)


def test_a_version_by_a_resumable_upload_needs_the_scope_publish(teams):
    begin = tus_creation(9, kind="dataset", name="tiny")
    with teams.client("submit") as client:
        assert client.post("/v1/uploads", headers=begin).status_code == 403
        with teams.client("publish") as publisher:
            place = publisher.post("/v1/uploads", headers=begin).headers["location"]
        assert client.patch(place, headers=tus_part(0), content=9 * b"x").status_code == 403


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "psk_abc", "Bearer psk_é"])
def test_a_header_of_another_kind_is_no_key(teams, header):
    with teams.client("none") as client:
        answer = client.get("/v1/me", headers={"Authorization": header.encode()})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


WHY = {
    "mistyped": "is mistyped or cut off",
    "expired": "has expired",
    "revoked": "was revoked",
    "wrong": "is not known",
}


def test_who_has_a_key_is_told_why_it_is_not_valid_and_so_is_the_log_without_its_text(teams):
    for name, why in WHY.items():
        with teams.client(name) as client:
            answer = client.get("/v1/me")
        assert answer.status_code == 401
        assert f"expected a valid key, found one that {why}" in answer.json()["detail"]
    log = teams.service.log.read_text()
    noted = [json.loads(line) for line in log.splitlines() if "a key was refused" in line]
    assert {note["because"].partition(" (")[0] for note in noted} == {*WHY.values()}
    assert not [text for text in teams.texts.values() if text.split("_")[2][:12] in log]


def test_who_lacks_the_secret_is_not_told_whether_a_key_is_there(teams):
    given = [_other_secret(teams.texts[name]) for name in ("admin", "expired", "revoked")]
    given.append(_other_secret(f"psk_{12 * 'z'}_"))  # an id that no key has
    said = set()
    for text in given:
        with teams.client_of(text) as client:
            answer = client.get("/v1/me")
        said.add(json.dumps({**answer.json(), "request_id": ""}))
    assert len(said) == 1


@pytest.mark.parametrize(("name", "status"), [("none", b"401"), ("read", b"403")])
def test_a_key_is_refused_before_the_body_is_read(teams, name, status):
    """The body never comes: an answer comes all the same."""
    key = f"Authorization: Bearer {teams.texts['read']}\r\n" if name == "read" else ""
    head = f"PUT /v1/checkpoints/{digest(b'x')} HTTP/1.1\r\nHost: localhost\r\n{key}"
    with socket.create_connection(("127.0.0.1", teams.service.port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        assert connection.recv(100).split()[1] == status


def test_a_key_that_is_revoked_ends_at_once(teams):
    made, text = keys.create_key(teams.service.records, "red", Scope.READ)
    place = f"/v1/evaluations/{teams.places['evaluations']}"
    with teams.client_of(text) as client:
        for _ in range(3):
            answer = client.get(place)  # a kept answer from the second on
            assert answer.status_code == 200
        keys.revoke_key(teams.service.records, made.id)
        assert client.get(place).status_code == 401
        unchanged = {"If-None-Match": answer.headers["etag"]}
        assert client.get(place, headers=unchanged).status_code == 401


def test_its_use_is_noted_and_listed(teams):
    made, text = keys.create_key(teams.service.records, "red", Scope.READ)
    with teams.client_of(text) as client:
        client.get("/v1/me")
    until(lambda: keys.read_key(teams.service.records, made.id).used_at, 10, "a noted use")


def test_a_stream_ends_at_its_next_sign_of_life_once_its_key_is_revoked(
    teams, waiting, monkeypatch
):
    monkeypatch.setattr(evaluations, "_KEEP_ALIVE_SECONDS", 0.2)
    with teams.service.held():
        run = _ok(waiting.client.post("/v1/evaluations", json=waiting.submission)).json()["id"]
        heard = waiting.begin("GET", f"/v1/evaluations/{run}/events")
        teams.service.until_awaited(run)
        waiting.revoke()
        assert "event: end" not in heard.result(20).text


@pytest.fixture
def waiting(teams):
    """A run that does not end before the service goes on, and a key that may be revoked."""
    made, text = keys.create_key(teams.service.records, "red", Scope.SUBMIT)
    captions = [{**each, "caption": f"w5 {made.id}"} for each in CAPTIONS]
    asked = {**ASKED, "captions": captions}
    with (
        ThreadPoolExecutor(1) as pool,
        teams.client_of(text) as client,
    ):
        yield SimpleNamespace(
            client=client,
            begin=lambda *asked, **more: pool.submit(client.request, *asked, **more),
            submission={**asked, "labels": {"of": made.id}},
            revoke=lambda: keys.revoke_key(teams.service.records, made.id),
            runs=lambda: client.get("/v1/evaluations", params={"label.of": made.id}).json(),
        )


@pytest.mark.parametrize("what", ["a change", "the end", "a submission"])
def test_who_waits_is_not_answered_once_the_key_is_revoked(teams, waiting, what):
    headers = {"Prefer": "wait=50"}
    asked = "POST", "/v1/evaluations"
    body = {"json": waiting.submission}
    with teams.service.held():
        if what != "a submission":
            begun = _ok(waiting.client.request(*asked, **body))
            asked, body = ("GET", begun.headers["location"]), {}
        if what == "a change":
            headers["If-None-Match"] = begun.headers["etag"]
        answer = waiting.begin(*asked, headers=headers, **body)
        until(lambda: waiting.runs()["items"], 20, "the run")
        teams.service.until_awaited(waiting.runs()["items"][0]["id"])
        waiting.revoke()
    answered = answer.result(60)
    assert (answered.status_code, answered.json()["code"]) == (401, "unauthorized")


def _asked_from(running, address, headers=()):
    app = create_app(running)

    async def ask():
        transport = httpx.ASGITransport(app, client=(address, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/v1/evaluations", headers=dict(headers))

    return asyncio.run(ask()).status_code


def test_without_keys_only_this_machine_may_ask_and_nobody_once_all_have_ended(
    serve_here, tmp_path
):
    with serve_here(tmp_path) as service:
        running = service._running
        forwarded = {"X-Forwarded-For": "127.0.0.1"}
        assert _asked_from(running, "127.0.0.1") == 200
        assert _asked_from(running, "::1") == 200
        assert _asked_from(running, "192.0.2.7") == 401
        assert _asked_from(running, "127.0.0.1", forwarded) == 401  # a proxy that nobody named
        made, text = keys.create_key(service.records, "red", Scope.READ)
        assert _asked_from(running, "127.0.0.1") == 401
        assert _asked_from(running, "192.0.2.7", {"Authorization": f"Bearer {text}"}) == 200
        keys.revoke_key(service.records, made.id)
        assert _asked_from(running, "127.0.0.1") == 401
        with service.records.transaction() as connection:
            connection.execute(rows.delete())
        assert _asked_from(running, "127.0.0.1") == 200


def test_who_cancels_what_another_has_begun_is_noted(teams):
    captions = [{**each, "caption": "w6 w7"} for each in CAPTIONS]
    with teams.service.held(), teams.client("submit") as one, teams.client("admin") as two:
        theirs, own = (
            _ok(at.post("/v1/evaluations", json={**ASKED, "captions": captions})).json()["id"]
            for at in (one, two)
        )
        for run in (theirs, own):
            assert two.post(f"/v1/evaluations/{run}/cancel").status_code == 202
        noted = two.get("/v1/audit", params={"action": "run.canceled"}).json()["items"]
    by = f"red/{teams.ids['submit']}"
    assert [(each["object"], each["key"], each["detail"]) for each in noted] == [
        (theirs, teams.ids["admin"], {"of": by})
    ]
