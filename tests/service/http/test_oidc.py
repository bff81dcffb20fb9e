"""Tokens of CI jobs over HTTP: real ones of each issuer get a key, and no forgery does."""

import json
import time

import httpx
import pytest
import sqlalchemy as sa

from helpers import ci_tokens
from helpers.ci_tokens import as_json, by_secret, encoded, github, gitlab, other, signed
from helpers.fleet import bundle
from helpers.service_here import service_here
from service.access import keys
from service.access.oidc import trusted_issuers
from service.access.oidc.exchange import TokenExchange
from service.access.oidc.key_sets import KeySets
from service.contract.askers import Scope
from service.engine.tables import keys as rows
from service.engine.tables import oidc_tokens

PLACE = "/v1/keys/oidc"
CAPTIONS = [{"image": f"{n}.jpg", "caption": "w1 w2"} for n in range(12)]
ASKED = {"dataset": "tiny/test", "captions": CAPTIONS, "postgen": ["bleu_1"]}


@pytest.fixture(scope="module")
def service(issuers, tmp_path_factory):
    """Nothing is scored: what is submitted waits."""
    folder = tmp_path_factory.mktemp("of jobs")
    with service_here(folder / "home", jobs=ci_tokens.exchange(issuers, folder)) as service:
        service.hold()
        _, text = keys.create_key(service.records, "red", Scope.ADMIN)
        with _client(service, text) as client:
            assert client.put("/v1/datasets/tiny", content=bundle(12)).is_success
        yield service


def _client(service, key=None):
    own = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=service.url, headers=own, timeout=60)


def _exchanged(service, token):
    with _client(service) as client:
        return client.post(PLACE, json={"token": token})


def _key(service, token):
    answer = _exchanged(service, token)
    assert answer.status_code == 201, answer.text
    return answer.json()


def _why(service, token):
    """What the log says of the refusal, which the answer does not."""
    before = len(_refusals(service))
    answer = _exchanged(service, token)
    assert answer.status_code == 401, answer.text
    (noted,) = _refusals(service)[before:]
    problem = answer.json()
    assert (problem["code"], problem["detail"], problem["errors"]) == ("unauthorized", _ONE, [])
    return noted["because"]


def _refusals(service):
    lines = service.log.read_text().splitlines()
    return [json.loads(line) for line in lines if "a job's token was refused" in line]


_ONE = (
    "expected a token of a CI job that this service exchanges for a key, found another "
    "one: the service's log says why, and its operator's PRESCORE_OIDC what is trusted"
)


def test_a_push_to_the_protected_main_of_github_gets_a_key_that_publishes(service, issuers):
    now = time.time()
    made = _key(service, signed(issuers.rsa, github()))
    assert (made["team"], made["scopes"]) == ("red", ["read", "submit", "publish"])
    assert made["labels"] == {"branch": "main", "commit": 40 * "a", "run": "555"}
    with _client(service, made["key"]) as client:
        me = client.get("/v1/me").json()
        assert (me["team"], me["scope"]) == ("red", "publish")
        assert (me["name"], me["expires_at"]) == ("github 123 refs/heads/main", made["expires_at"])
    key = keys.read_key(service.records, me["key"])
    assert key.expires_at == pytest.approx(now + 3600, abs=30)


def test_gitlab_and_other_issuers_get_theirs(service, issuers):
    made = _key(service, signed(issuers.gitlab, gitlab()))
    assert (made["scopes"][-1], made["labels"]["branch"]) == ("publish", "main")
    made = _key(service, signed(issuers.ec, other()))
    assert (made["team"], made["scopes"], made["labels"]) == ("blue", ["read"], {"job": "job/9"})
    one = signed(issuers.rsa, other(aud=[ci_tokens.AUDIENCE], nbf=None, jti=None))
    assert _key(service, one)["team"] == "blue"


PULL = {"event_name": "pull_request", "ref": "refs/pull/12/merge", "ref_protected": "false"}
MERGE = {
    "pipeline_source": "merge_request_event",
    "ref_path": "refs/merge-requests/3/head",
    "ref_protected": "false",
}


@pytest.mark.parametrize(
    ("issuer", "told", "branch"),
    [
        (github, {"ref": "refs/heads/x", "ref_protected": "false"}, "x"),
        (github, PULL, "12/merge"),
        (github, {"repository_id": "124"}, "main"),
        (gitlab, MERGE, "refs/merge-requests/3/head"),
        # events that do not run the ref's own code, whatever else the token says of its ref
        (github, {"event_name": "pull_request"}, "main"),
        (github, {"event_name": "workflow_run"}, "main"),
        (github, {"event_name": None}, "main"),
        (gitlab, {"pipeline_source": "merge_request_event"}, "main"),
        # refs that are not the branch main
        (github, {"ref": "refs/tags/main"}, "refs/tags/main"),
        (github, {"ref": "refs/heads/refs/pull/1/head"}, "refs/pull/1/head"),
        (github, {"ref": "refs/heads/refs/heads/main"}, "refs/heads/main"),
        (github, {"ref": "refs/pull/main"}, "refs/pull/main"),
    ],
)
def test_a_job_of_another_ref_or_event_submits_and_cannot_publish(
    service, issuers, issuer, told, branch
):
    claims = issuer(**told)  # now: a token is valid for some minutes
    key = issuers.gitlab if claims["iss"] == ci_tokens.GITLAB else issuers.rsa
    made = _key(service, signed(key, claims))
    assert (made["scopes"], made["labels"]["branch"]) == (["read", "submit"], branch)


def _signed_twice(rsa, claims):
    """A token whose header names two algorithms."""
    head = encoded(b'{"typ": "JWT", "alg": "none", "alg": "RS256", "kid": "rsa-1"}')
    return f"{head}.{claims}.{encoded(rsa.sign(f'{head}.{claims}'.encode()))}"


def _make_forgeries(issuers):
    """Tokens that are none, by the log's words on them."""
    rsa, others, now, usual = issuers.rsa, issuers.others, time.time(), github()
    text = signed(rsa, usual)
    head, claims, signature = text.split(".")
    elsewhere, away = "https://keys.example:8443/mine", "https://other.example"
    evil = "https://token.actions.githubusercontent.com.evil"

    def told(**claims):
        return signed(rsa, github(**claims))

    def headed(**fields):
        return signed(rsa, usual, fields)

    return {
        "is signed by an algorithm that is not allowed": [
            f"{as_json({'typ': 'JWT', 'alg': 'none', 'kid': rsa.kid})}.{claims}.",
            by_secret(rsa.pem, usual, {"typ": "JWT", "alg": "HS256", "kid": rsa.kid}),
            signed(issuers.ec, usual),
        ],
        "is signed by an algorithm that its key is not for": [
            signed(rsa, other(), {"alg": "ES256"})
        ],
        "has a signature that is not its issuer's": [
            signed(others, usual),
            f"{head}.{as_json({**usual, 'repository_id': '124'})}.{signature}",
            f"{head}.{claims}.",
            signed(issuers.gitlab, usual),
        ],
        "names a key of its own (jku)": [signed(others, usual, {"jku": elsewhere})],
        "names a key of its own (x5u)": [signed(others, usual, {"x5u": elsewhere})],
        "names a key of its own (jwk)": [signed(others, usual, {"jwk": others.public})],
        "has a header that is not understood (crit)": [headed(crit=["exp"], exp=0)],
        "names a key that its issuer does not have": [headed(kid="rsa-9")],
        "does not say by which key it is signed": [headed(kid=None)],
        "is of another type than JWT": [headed(typ="at+jwt")],
        "has header that are not strict JSON": [_signed_twice(rsa, claims)],
        "has an issuer that is not trusted": [told(iss=evil), told(iss=None)],
        "has claims for which there is no rule": [
            signed(issuers.gitlab, {**usual, "iss": ci_tokens.GITLAB}),
            signed(issuers.gitlab, gitlab(project_id="43", job_project_id="43")),
            told(repository_id="999"),
        ],
        "is for another audience": [told(aud=away), told(aud=None)],
        "has 2 audiences": [told(aud=[ci_tokens.AUDIENCE, away])],
        "has expired": [told(exp=now - 61)],
        "does not say when (exp)": [told(exp=None), told(exp=True)],
        "is not valid yet": [told(nbf=now + 90)],
        "was issued in the future": [told(iat=now + 90)],
        "is valid for longer than 3600 s, or for no time at all": [told(exp=now + 7200)],
        "is of a fork": [
            told(event_name="pull_request", head_repository_id="999"),
            signed(issuers.gitlab, gitlab(source_project_id="43")),
            signed(issuers.gitlab, gitlab(project_id="43", job_project_id="42")),  # GitLab 18.2
        ],
        "is of pull_request_target, by which forks run code beside the branch's name": [
            told(event_name="pull_request_target")
        ],
        "has no sha, from which the label commit follows": [told(sha=None)],
        "has a ref that no label can have": [told(ref="refs/heads/\u202eniam")],
        "is no JWT": ["psk_abc", f"{text}.{signature}"],
    }


def test_every_forgery_is_refused_alike_and_the_log_says_why(service, issuers):
    forgeries = _make_forgeries(issuers)
    for why, tokens in forgeries.items():
        assert [_why(service, token) for token in tokens] == [why] * len(tokens)
    assert sum(map(len, forgeries.values())) == 38


def test_clocks_may_differ_by_a_minute(service, issuers):
    now = time.time()
    late = github(iat=now - 300, exp=now - 50)
    early = github(iat=now + 50, nbf=now + 50)
    for claims in (late, early):
        assert _key(service, signed(issuers.rsa, claims))


def test_a_token_is_exchanged_once(service, issuers):
    """With another signature of the same claims too, where a token has no number of its own."""
    token = signed(issuers.rsa, github())
    _key(service, token)
    assert _why(service, token) == "was exchanged before"
    claims = other(jti=None)
    _key(service, signed(issuers.ec, claims))
    assert _why(service, signed(issuers.ec, claims)) == "was exchanged before"
    claims = github(jti="same")
    _key(service, signed(issuers.rsa, claims))
    again = {**claims, "exp": claims["exp"] + 1}
    assert _why(service, signed(issuers.rsa, again)) == "was exchanged before"
    _key(service, signed(issuers.gitlab, gitlab(jti="same")))  # another issuer's


def test_the_log_names_the_job_and_has_neither_token_nor_key(service, issuers):
    made = _key(service, token := signed(issuers.rsa, github()))
    _why(service, refused := signed(issuers.rsa, github(repository_id="999", ref="refs/heads/y")))
    assert _refusals(service)[-1]["job"] == "github 999 refs/heads/y"
    whole = service.log.read_text()
    for secret in (token, refused, made["key"]):
        parts = [part for part in secret.replace("_", ".").split(".") if len(part) > 11]
        assert not [part for part in parts if part[-20:] in whole]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"token": ""}, 422),
        ({"token": 20_000 * "a"}, 422),
        ({"token": 60_000 * "a"}, 413),
    ],
)
def test_a_body_of_another_form_is_told_so(service, body, code):
    with _client(service) as client:
        assert client.post(PLACE, json=body).status_code == code


def test_only_posting_there_needs_no_key(service):
    with _client(service) as client:
        for method in ("GET", "PUT", "DELETE"):
            assert client.request(method, PLACE).status_code == 401
        assert client.post(f"{PLACE}/").status_code == 401


def test_where_no_issuer_is_trusted_no_token_is_exchanged(issuers, tmp_path):
    with service_here(tmp_path) as service:
        why = _why(service, signed(issuers.rsa, github()))
    assert why == "is of an issuer, and none is trusted: PRESCORE_OIDC is not set"


def test_keys_that_cannot_be_had_are_503(issuers, tmp_path):
    path = tmp_path / "oidc.toml"
    path.write_text(ci_tokens.TRUSTED)
    away = KeySets(issuers.client.__class__(resolve=lambda host, port: ["127.0.0.1"]))
    with service_here(
        tmp_path / "home", jobs=TokenExchange(trusted_issuers.read_issuers(path), away)
    ) as service:
        answer = _exchanged(service, signed(issuers.rsa, github()))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def _submitted(client, **labels):
    return client.post("/v1/evaluations", json={**ASKED, "labels": labels})


def test_what_a_job_submits_has_its_labels_and_no_others_of_these_names(service, issuers):
    pull = github(event_name="pull_request", ref="refs/pull/7/merge", sha=40 * "c")
    made = _key(service, signed(issuers.rsa, pull))
    with _client(service, made["key"]) as client:
        run = _submitted(client, note="mine", branch="7/merge").json()
        assert run["labels"] == {**made["labels"], "note": "mine"}
        for name, value in (("branch", "x"), ("branch", "main"), ("commit", "d"), ("run", "1")):
            refused = _submitted(client, **{name: value})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert refused.json()["errors"][0]["pointer"] == f"/labels/{name}"
            place = f"/v1/evaluations/{run['id']}"
            for change in (value, None):
                refused = client.patch(place, json={"labels": {name: change}})
                assert refused.status_code == 403, (name, change)
                assert refused.json()["errors"][0]["pointer"] == f"/labels/{name}"
        assert client.patch(place, json={"labels": {"note": "x"}}).status_code == 200
        assert client.get(place).json()["labels"] == {**made["labels"], "note": "x"}
    main = _key(service, signed(issuers.rsa, github()))
    with _client(service, main["key"]) as client:
        assert _submitted(client).json()["labels"] == main["labels"]


def test_the_name_of_a_protected_label_does_not_help_without_the_scope(service, issuers):
    """A job that may only submit, on a branch that is called as the protected one is."""
    made = _key(service, signed(issuers.rsa, github(ref_protected="false")))
    assert made["labels"]["branch"] == "main"
    with _client(service, made["key"]) as client:
        assert _submitted(client).status_code == 403


def test_keys_of_jobs_are_bounded_beside_those_of_people(service, issuers, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 0)
    token = signed(issuers.rsa, github())
    answer = _exchanged(service, token)
    assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
    monkeypatch.setattr(keys, "MOST", 1000)
    assert _key(service, token)  # it was not spent


def test_a_key_made_for_a_job_stands_in_the_list_of_changes(service, issuers):
    made = _key(service, signed(issuers.rsa, github()))
    _, text = keys.create_key(service.records, "red", Scope.ADMIN)
    with _client(service, text) as client:
        noted = client.get("/v1/audit", params={"object": made["key"].split("_")[1]}).json()
    ((entry,)) = noted["items"]
    assert (entry["action"], entry["address"]) == ("key.created", "127.0.0.1")
    assert entry["detail"]["name"] == "github 123 refs/heads/main"


def test_what_has_ended_is_trimmed_and_the_service_stays_closed(issuers, tmp_path):
    path = tmp_path / "oidc.toml"
    path.write_text(ci_tokens.TRUSTED)
    jobs = TokenExchange(trusted_issuers.read_issuers(path), KeySets(issuers.client))
    with service_here(tmp_path / "home", jobs=jobs) as service:
        token = signed(issuers.rsa, github())
        for each in (token, signed(issuers.rsa, github())):
            _key(service, each)
        later = time.time() + 300
        assert keys.delete_ended_job_keys(service.records, later) == 0
        assert _why(service, token) == "was exchanged before"
        later += keys.ENDED_KEY_SECONDS + 3600
        assert keys.delete_ended_job_keys(service.records, later) == 2 + 1
        with service.records.reading() as connection:
            left = [
                connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in (oidc_tokens, rows)
            ]
        with _client(service) as client:
            assert client.get("/v1/me").status_code == 401
    assert left == [0, 1]
