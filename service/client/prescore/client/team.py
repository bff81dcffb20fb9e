"""Calls about a team: its webhooks, keys, labels and changes, and the queues it waits in."""
# ruff: noqa: A002  `id` and `format` are the contract's words

from collections.abc import Sequence

from prescore.client.lists import Listing
from prescore.client.requests import Calls, check_names, drop_none
from prescore.http.transport import quote_segment
from prescore.models import Change, Key, Label, Me, Queue, Webhook, WebhookSecret, Worker
from prescore.models.evaluations import LabelList
from prescore.models.search import NameMatch, NameMatches
from prescore.models.workers_and_queues import QueueList, WorkerList

WEBHOOKS = "/v1/webhooks"


class TeamCalls(Calls):
    def make_webhook(
        self, url: str, *, events: Sequence[str] | None = None, format: str | None = None
    ) -> WebhookSecret:
        """Let a URL of yours be told of your team's runs from now on. The answer's `secret`, by
        which messages are signed, is told this once: keep it where secrets are kept.

        `events`: "run.succeeded", "run.failed" (these two if none are named), "run.canceled",
        "verdict.passed", "verdict.failed", "verdict.undecided", "verdict.not_comparable".
        `format`: "standard" or "slack". Not repeated after a failure, since that could make two.
        """
        fields = {"url": url, "events": check_names("events", events), "format": format}
        return self._change(WebhookSecret, "POST", WEBHOOKS, drop_none(fields), once=True)

    def webhooks(self) -> Listing[Webhook]:
        """Your team's webhooks, the latest first."""
        return self._list(Webhook, "webhooks", WEBHOOKS)

    def webhook(self, id: str) -> Webhook:
        """A webhook: whether it is active, what waits, and what went wrong the last times."""
        return self._get(Webhook, _build_webhook_path(id))

    def rotate_webhook(self, id: str) -> WebhookSecret:
        """Give a webhook another secret; for a day messages are signed by both. Not repeated after
        a failure: rotate again if the answer was lost.
        """
        return self._change(WebhookSecret, "POST", f"{_build_webhook_path(id)}/rotate", once=True)

    def test_webhook(self, id: str) -> Webhook:
        """Let the event webhook.test be sent, once, within seconds: `delivered_at` or `errors` of
        `webhook(id)` then tell what came of it.
        """
        return self._change(Webhook, "POST", f"{_build_webhook_path(id)}/test")

    def delete_webhook(self, id: str) -> None:
        """Delete a webhook, with the messages that wait for it."""
        self._delete(_build_webhook_path(id))

    def me(self) -> Me:
        """Your team, what your key allows, and how much of its limits is used."""
        return self._get(Me, "/v1/me")

    def keys(self, *, page_size: int | None = None) -> Listing[Key]:
        """Your team's keys without their texts, the latest first. Needs the scope admin."""
        return self._list(Key, "keys", "/v1/keys", limit=page_size)

    def labels(self, dataset: str | None = None) -> tuple[Label, ...]:
        """The labels that your team's latest evaluations have, on NAME[@VERSION][/SPLIT] or all."""
        return tuple(self._get(LabelList, "/v1/labels", dataset=dataset).items)

    def audit(
        self, *, action: str | None = None, of: str | None = None, page_size: int | None = None
    ) -> Listing[Change]:
        """Changes and who made them, the latest first; `of`: a run, an upload or `name@version`."""
        return self._list(Change, "changes", "/v1/audit", action=action, object=of, limit=page_size)

    def search(self, text: str, *, limit: int = 20) -> tuple[NameMatch, ...]:
        """Splits, trainings, evaluations, metrics and images whose name has a text, 50 at most."""
        return tuple(self._get(NameMatches, "/v1/search", q=text, limit=limit).items)

    def queues(self) -> tuple[Queue, ...]:
        """The queues, with what waits to be computed."""
        return tuple(self._get(QueueList, "/v1/queues").items)

    def workers(self) -> tuple[Worker, ...]:
        """The workers that run."""
        return tuple(self._get(WorkerList, "/v1/workers").items)


def _build_webhook_path(id_: str) -> str:
    return f"{WEBHOOKS}/{quote_segment(id_)}"
