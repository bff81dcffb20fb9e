"""When messages are sent, and what becomes of those that do not arrive. Time is an argument."""

import json
from itertools import pairwise

import pytest
import sqlalchemy as sa

from service.contract import limits
from service.contract.api.urls import TEST_EVENT, WebhookRequest
from service.contract.errors import Conflict, NotFound
from service.engine import history
from service.engine.tables import deliveries as rows
from service.engine.tables import webhooks as hook_rows
from service.webhooks import deliveries, registry
from service.webhooks.deliveries import DeliveryOutcome

WRONG = DeliveryOutcome("expected the status 2xx, found 500")
DAY = 86400.0


def _made(records, url="https://hooks.example/a", **asked):
    return registry.create_webhook(records, WebhookRequest(url=url, **asked), "http://here:8000")


def _added(records, made, event="run.failed", team="local"):
    with records.transaction() as connection:
        deliveries.add_delivery(connection, made.id, team, event, "{}")


def _first_at(records):
    with records.reading() as connection:
        return connection.execute(sa.select(sa.func.min(rows.c.next_at))).scalar_one()


@pytest.fixture
def waiting(records):
    """A webhook for which a message waits, and since when."""
    made = _made(records)
    _added(records, made)
    return made, _first_at(records)


def _of_others(records):
    asked = WebhookRequest(url="https://o.example/")
    return registry.create_webhook(records.of("other"), asked, "http://here")


def _try(records, now, outcome):
    """One attempt of all that is due; retries exactly at their delays."""
    taken = deliveries.take_due_messages(records, now, 8)
    for each in taken:
        deliveries.end_attempt(records, each, outcome, now, spread=lambda: 0.5)
    return taken


def test_what_has_arrived_is_forgotten(records, waiting):
    made, now = waiting
    (taken,) = _try(records, now, DeliveryOutcome())
    assert (taken.url, taken.event, taken.body) == ("https://hooks.example/a", "run.failed", "{}")
    assert taken.secrets == (made.secret,)
    assert deliveries.take_due_messages(records, now + 10 * DAY, 8) == []
    found = registry.read_webhook(records, made.id)
    assert (found.waiting, found.lost, found.errors) == (0, 0, ())
    assert found.delivered_at is not None


def test_what_does_not_arrive_is_tried_again_with_the_same_id_for_three_days(records, waiting):
    made, now = waiting
    begun = now
    tries = []
    for _ in range(100):
        tries += [(now - begun, taken.id) for taken in _try(records, now, WRONG)]
        if not registry.read_webhook(records, made.id).waiting:
            break
        now = _first_at(records)
    assert len({identity for _, identity in tries}) == 1
    # The table of the standard: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h.
    apart = [round(later - earlier) for (earlier, _), (later, _) in pairwise(tries)]
    assert apart == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert 3 * DAY < tries[-1][0] < 3.2 * DAY
    found = registry.read_webhook(records, made.id)
    assert found.status == "disabled"
    assert found.disabled_because == "nothing has arrived for three days"
    assert found.lost == 1
    assert [each.detail for each in found.errors] == [WRONG.error] * 5


def test_retries_of_many_are_apart(records, waiting):
    _, now = waiting
    nexts = []
    for share in (0.0, 1.0):
        (taken,) = deliveries.take_due_messages(records, now, 8)
        deliveries.end_attempt(records, taken, WRONG, now, spread=lambda at=share: at)
        nexts.append(_first_at(records) - now)
        now = now + DAY
    assert nexts == pytest.approx([4.0, 360.0])


def test_one_message_that_is_refused_does_not_hold_up_the_others(records):
    made = _made(records)
    _added(records, made)
    _added(records, made)
    now = _first_at(records) + 1
    first = deliveries.take_due_messages(records, now, 8)[0]
    deliveries.end_attempt(records, first, WRONG, now)
    second = deliveries.take_due_messages(records, now + 7, 8)[0]
    assert second.id != first.id
    deliveries.end_attempt(records, second, DeliveryOutcome(), now + 7)
    assert registry.read_webhook(records, made.id).waiting == 1


def test_a_webhook_that_fails_is_asked_less_and_less_often(records):
    """Whatever waits for it: a receiver that is down is not asked a thousand times."""
    made = _made(records)
    for _ in range(20):
        _added(records, made)
    begun = now = _first_at(records)
    tries = 0
    while now < begun + 3600:
        tries += len(_try(records, now, WRONG))
        now += 30
    assert tries < 15


@pytest.mark.parametrize(("pause", "kept"), [(1000.0, 1000), (1e12, DAY)])
def test_a_receiver_that_asks_to_wait_is_not_asked_before_but_within_a_day(
    records, waiting, pause, kept
):
    _, now = waiting
    _try(records, now, DeliveryOutcome("expected the status 2xx, found 429", pause=pause))
    assert deliveries.take_due_messages(records, now + kept - 1, 8) == []
    assert len(deliveries.take_due_messages(records, now + kept + 1, 8)) == 1


def test_gone_disables_at_once_until_a_test_which_is_tried_once_arrives(records):
    made = _made(records)
    _added(records, made)
    _added(records, made)
    now = _first_at(records) + 1
    _try(records, now, DeliveryOutcome("found 410", gone=True))
    found = registry.read_webhook(records, made.id)
    assert (found.status, found.disabled_because) == ("disabled", "its receiver answered 410 Gone")
    assert (found.waiting, found.lost) == (0, 2)
    _added(records, made, event=TEST_EVENT)
    assert len(_try(records, now, WRONG)) == 1
    found = registry.read_webhook(records, made.id)
    assert (found.status, found.waiting, found.lost) == ("disabled", 0, 2)
    _added(records, made, event=TEST_EVENT)
    _try(records, now + 1, DeliveryOutcome())
    assert registry.read_webhook(records, made.id).status == "active"


def test_what_is_being_sent_is_taken_by_nobody_else_until_its_time_is_over(records, waiting):
    """Who dies while it sends loses nothing: another sends the same message."""
    _, now = waiting
    (first,) = deliveries.take_due_messages(records, now, 8)
    assert deliveries.take_due_messages(records, now + deliveries.TAKEN_SECONDS - 1, 8) == []
    (again,) = deliveries.take_due_messages(records, now + deliveries.TAKEN_SECONDS + 1, 8)
    assert again == first


def test_slow_receivers_of_one_team_do_not_hold_up_another(records):
    mine = [_made(records, f"https://hooks.example/{number}") for number in range(8)]
    other = _of_others(records)
    for made in mine:
        _added(records, made)
    _added(records, other, team="other")
    now = _first_at(records) + 1
    taken = deliveries.take_due_messages(records, now, 8)
    assert [each.webhook for each in taken].count(other.id) == 1
    assert len(taken) == 3  # two of the first team
    assert deliveries.take_due_messages(records, now, 8) == []


def test_messages_that_are_too_many_are_lost_and_counted(records, monkeypatch):
    monkeypatch.setattr(limits, "DELIVERIES", 3)
    made = _made(records)
    for _ in range(5):
        _added(records, made)
    found = registry.read_webhook(records, made.id)
    assert (found.waiting, found.lost) == (3, 2)
    monkeypatch.setattr(deliveries, "_TEAMS", 1)
    other = _of_others(records)
    _added(records, other, team="other")
    assert registry.read_webhook(records, other.id).lost == 1


def test_a_team_has_so_many_webhooks_at_most(records, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOKS", 2)
    _made(records)
    _made(records)
    with pytest.raises(Conflict, match="as many as may be"):
        _made(records)
    assert _of_others(records)


def test_another_teams_webhook_looks_absent(records):
    made = registry.create_webhook(
        records.of("one"), WebhookRequest(url="https://hooks.example/"), "http://here"
    )
    other = records.of("other")
    assert registry.list_webhooks(other) == []
    for act in (registry.read_webhook, registry.delete_webhook, registry.rotate_secret):
        with pytest.raises(NotFound):
            act(other, made.id)
    assert [each.id for each in registry.list_webhooks(records.of("one"))] == [made.id]


def test_a_new_secret_signs_beside_the_old_one_for_a_day(records):
    made = _made(records)
    new = registry.rotate_secret(records, made.id)
    assert new.secret != made.secret
    _added(records, made)
    now = _first_at(records)
    (taken,) = deliveries.take_due_messages(records, now, 8)
    assert taken.secrets == (new.secret, made.secret)
    (later,) = deliveries.take_due_messages(records, now + registry.OLD_SECONDS + 1, 8)
    assert later.secrets == (new.secret,)


def test_a_slack_webhook_has_no_secret(records):
    made = _made(records, format="slack")
    assert made.secret is None
    with pytest.raises(Conflict, match="no signatures"):
        registry.rotate_secret(records, made.id)


def test_what_is_deleted_is_not_sent_and_not_missed(records, waiting):
    made, now = waiting
    (taken,) = deliveries.take_due_messages(records, now, 8)
    registry.delete_webhook(records, made.id)
    deliveries.end_attempt(records, taken, WRONG, now)
    assert deliveries.take_due_messages(records, now + DAY, 8) == []


def test_the_url_is_shown_without_what_may_be_a_password(records):
    url = "https://hooks.slack.example/services/T0001/B0002/s3cr3tTokenOfSlack"
    assert _made(records, url).url == "https://hooks.slack.example/…lack"
    assert _made(records, "https://hooks.example/?token=x").url == "https://hooks.example/…"


def test_errors_are_few_and_the_latest_come_first(records):
    made = _made(records)
    for number in range(7):
        _added(records, made, event=TEST_EVENT)
        _try(records, _first_at(records), DeliveryOutcome(f"number {number}"))
    with records.reading() as connection:
        kept = json.loads(connection.execute(sa.select(hook_rows.c.errors)).scalar_one())
    assert [each["detail"] for each in kept] == [f"number {n}" for n in (6, 5, 4, 3, 2)]


def test_nothing_is_noted_where_nobody_listens(records):
    with records.transaction() as connection:
        history.note_ended_run(connection, "ev_1", 1.0)
        assert history.list_ended_runs(connection, 10) == []
