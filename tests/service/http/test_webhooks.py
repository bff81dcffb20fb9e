"""Webhooks over HTTP: made, told of runs that end, and nothing secret in any answer."""

import json
import runpy
import textwrap
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.certificates import Authority
from helpers.fleet import bundle
from helpers.tls_servers import PORT, read_request, serving
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts
from service.webhooks.sender import WebhookSender

ROOT = Path(__file__).resolve().parents[3]
IS_OURS = runpy.run_path(str(ROOT / "deploy/guide/receive_webhook.py"))["is_ours"]
URL = f"https://hooks.example:{PORT}/some/long/secret/place"
CAPTIONS = [{"image": f"{n}.jpg", "caption": "a word"} for n in range(3)]
RUN = {"captions": CAPTIONS, "dataset": "tiny/test", "postgen": ["bleu_1"], "subset": True}


class StatusReceiver:
    """Answers with `status`, and keeps what it is told."""

    def __init__(self):
        self.status = 204
        self.received = []

    def talk(self, near):
        head, body = read_request(near)
        pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        self.received.append(({name.lower(): text for name, text in pairs}, body))
        near.sendall(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())

    @property
    def messages(self):
        return [json.loads(body) for _, body in self.received]


@pytest.fixture(scope="module")
def told(serve_here, tmp_path_factory):
    """A service and the sender beside it; what they may ask is a receiver on this machine."""
    receiver = StatusReceiver()
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with serving(receiver.talk, authority.issue("hooks.example").server()) as server:
        named = AllowedHosts.read(f"hooks.example:{PORT}")
        outgoing = OutboundClient(named, lambda host, port: [server.address], authority.client())
        home = tmp_path_factory.mktemp("a home")
        with serve_here(home, outgoing=outgoing) as service, service.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
            yield service, client, receiver, WebhookSender(service.parts, outgoing)


@contextmanager
def _webhook(client, **asked):
    made = client.post("/v1/webhooks", json={"url": URL, **asked})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"/v1/webhooks/{made.json()['id']}"
    yield made.json()
    assert client.delete(f"/v1/webhooks/{made.json()['id']}").status_code == 204
    assert client.get(f"/v1/webhooks/{made.json()['id']}").status_code == 404


def _ended(client, **asked):
    wait = {"Prefer": "wait=20"}
    answer = client.post("/v1/evaluations", json={**RUN, **asked}, headers=wait)
    assert answer.status_code == 201, answer.text
    return answer.json()


def _send(sender):
    sender.round()
    sender.join()


def test_a_run_that_ends_is_told_signed_and_with_what_is_worth_knowing(told):
    service, client, receiver, sender = told
    with _webhook(client) as made:
        receiver.received.clear()
        found = _ended(client, labels={"branch": "<!channel>"})
        _send(sender)
        ((headers, body),) = receiver.received
        assert IS_OURS(headers, body, made["secret"])
        assert not IS_OURS(headers, body + b" ", made["secret"])
        message = json.loads(body)
        assert message["type"] == "run.succeeded"
        assert message["data"]["scores"] == {"bleu_1": found["scores"]["bleu_1"]["value"]}
        assert message["data"]["labels"] == {"branch": "<!channel>"}
        assert message["data"]["url"] == f"{service.url}/v1/evaluations/{found['id']}"
        assert client.get(message["data"]["url"]).json()["id"] == found["id"]
        assert message["data"]["page"] == f"{service.url}/ui/evaluations/{found['id']}"
        after = client.get(f"/v1/webhooks/{made['id']}").json()
        assert (after["waiting"], after["errors"]) == (0, [])
        assert after["delivered_at"] is not None
        _send(sender)
        assert len(receiver.received) == 1


def test_a_verdict_is_told_to_those_who_ask_for_it(told):
    _, client, receiver, sender = told
    with _webhook(client, events=["verdict.failed"]), _webhook(client, events=["verdict.passed"]):
        receiver.received.clear()
        _ended(client, gates=["bleu_1 > 0.99"])
        _send(sender)
        (message,) = receiver.messages
        assert message["type"] == "verdict.failed"
        assert message["data"]["gates"] == [{"gate": "bleu_1 > 0.99", "verdict": "failed"}]


def test_slack_is_told_which_images_fell_most_where_a_gate_did_not_pass(told):
    service, client, receiver, sender = told
    words = client.get("/v1/datasets/tiny/images/0.jpg/references").json()["references"][0]
    good, bad = ([{"image": "0.jpg", "caption": text}] for text in (words, "a man's <!channel>"))
    gates = {"gates": ["rouge_l >= baseline"], "postgen": ["rouge_l"]}
    with _webhook(client, format="slack", events=["verdict.failed", "verdict.passed"]):
        past = _ended(client, captions=good, postgen=["rouge_l"])["id"]
        receiver.received.clear()
        fell = _ended(client, captions=bad, **gates, baseline=past)["id"]
        _ended(client, captions=good, **gates, baseline=fell)
        _send(sender)
        _send(sender)
        lines = {each["text"].count("\n"): each["text"].splitlines() for each in receiver.messages}
    assert sorted(lines) == [0, 1]  # none of the one that passed
    link = f"{service.url}/ui/evaluations/{fell}/images/0.jpg?with={past}|0.jpg"
    told_of = f"before: {words}; now: a man's &lt;?channel&gt;"
    assert lines[1][1] == f"<{link}>: rouge_l 1 to 0; {told_of}"


def test_links_to_the_page_are_those_of_its_public_address(told):
    service, client, receiver, sender = told
    parts = replace(service.parts, public_url="https://scores.example")
    with _webhook(client), _webhook(client, format="slack"):
        receiver.received.clear()
        found = _ended(client)
        _send(WebhookSender(parts, sender._client))
        page = f"https://scores.example/ui/evaluations/{found['id']}"
        (standard,) = [each["data"] for each in receiver.messages if "data" in each]
        (line,) = [each["text"] for each in receiver.messages if "text" in each]
        assert (standard["page"], standard["url"][: len(service.url)]) == (page, service.url)
        assert line.endswith(f"<{page}|open>")


def test_what_fails_is_told_in_the_webhook_and_sent_again_with_the_same_id(told):
    service, client, receiver, sender = told
    with _webhook(client) as made:
        receiver.received.clear()
        receiver.status = 500
        _ended(client)
        _send(sender)
        receiver.status = 204
        after = client.get(f"/v1/webhooks/{made['id']}").json()
        assert after["waiting"] == 1
        assert [each["detail"] for each in after["errors"]] == [
            "expected the status 2xx, found 500"
        ]
        lines = map(json.loads, service.log.read_text().splitlines())
        (line,) = [line for line in lines if line.get("webhook") == made["id"]]
        assert (line["type"], line["error"]) == ("run.succeeded", after["errors"][0]["detail"])
        (headers, _) = receiver.received[0]
        assert after["errors"][0]["message"] == headers["webhook-id"]
        assert "secret" not in json.dumps(after)


def test_secrets_and_urls_are_in_no_other_answer_and_in_no_log(told):
    service, client, receiver, sender = told
    with _webhook(client) as made:
        receiver.status = 404
        client.post(f"/v1/webhooks/{made['id']}/test")
        _send(sender)
        receiver.status = 204
        answers = [client.get("/v1/webhooks").text, client.get(f"/v1/webhooks/{made['id']}").text]
        log = service.log.read_text()
        assert made["id"] in log
        for text in (*answers, log):
            assert made["secret"] not in text
            assert "some/long/secret" not in text
        assert [each["id"] for each in json.loads(answers[0])["items"]] == [made["id"]]


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "https://127.0.0.1/",
        f"https://hooks.example/{'a' * 2000}",
    ],
)
def test_a_url_that_may_not_be_asked_is_refused_with_its_place(told, url):
    _, client, _, _ = told
    answer = client.post("/v1/webhooks", json={"url": url})
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/url"]


def test_who_makes_changes_and_deletes_webhooks_is_noted_without_secrets(told):
    _, client, _, _ = told
    with _webhook(client) as made:
        client.post(f"/v1/webhooks/{made['id']}/rotate")
    noted = client.get("/v1/audit", params={"object": made["id"]})
    actions = [entry["action"] for entry in noted.json()["items"]]
    assert actions == ["webhook.deleted", "webhook.rotated", "webhook.created"]
    assert "some/long/secret" not in noted.text
    assert made["secret"] not in noted.text


def test_the_guide_shows_the_receivers_check_as_it_is():
    code = (ROOT / "deploy/guide/receive_webhook.py").read_text(encoding="utf-8")
    _, function = code.split("\n\n\n", 1)
    page = (ROOT / "deploy/guide/webhooks-and-retention.md").read_text(encoding="utf-8")
    assert textwrap.indent(function, "    ") in page
