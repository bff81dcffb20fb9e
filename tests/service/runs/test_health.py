"""Health of metrics, found among the probes of a split."""

from helpers.statements import watched
from helpers.stored_records import PINNED, enter_run
from service.contract.api.analyses import ProbesRequest
from service.runs import probes


def _add(records, requests):
    """Probes that were asked for in this order."""
    with records.transaction() as connection:
        for at, request in enumerate(requests):
            times, marks = {"created_at": at, "finished_at": at}, probes._marks(request)
            enter_run(connection, f"pb_{at}", PINNED, None, marks, kind="probes", **times)


def _latest(records):
    with records.reading() as connection:
        return probes._find_latest(connection, PINNED)


def test_of_each_metric_the_latest_usual_probes_count(records):
    asked = [["bleu", "meteor"], ["cider_d"], ["bleu"], ["cider_d"]]
    usual = [ProbesRequest(dataset="d/test", metrics=metrics) for metrics in asked]
    _add(records, [*usual, ProbesRequest(dataset="d/test", probes=["human"])])
    assert _latest(records) == ["pb_3", "pb_2", "pb_0"]


def test_few_are_looked_at_however_many_there_are(records):
    usual = [ProbesRequest(dataset="d/test")] * 30
    _add(records, [*usual, *[ProbesRequest(dataset="d/test", tokenizer="none")] * 100])
    with records.reading() as connection, watched(records.engine) as statements:
        assert probes.find_health(connection, PINNED) is None
    assert len(statements) == 2
    assert not any("runs.request" in statement.text for statement in statements)
