"""Health of metrics, found among the probes of a split."""

import pytest

from helpers import stored_records
from helpers.statements import watched
from service.contract.api.analyses import ProbesRequest
from service.engine.records import Records
from service.engine.tables import labels, runs
from service.runs import probes
from service.stored.datasets import PinnedSplit

SPLIT = PinnedSplit("d", 1, "sha256:d", "sha256:c", "test", ("test",), 10, None)
ROW = {
    "kind": "probes",
    "dataset_name": "d",
    "dataset_version": 1,
    "dataset_digest": "sha256:d",
    "dataset_captions": "sha256:c",
    "split": "test",
    "status": "succeeded",
    "version": 1,
    "warnings": "[]",
    "deadline": 1.0,
}


@pytest.fixture
def records(tmp_path):
    engine = stored_records.open_empty_record(tmp_path)
    yield Records(engine)
    engine.dispose()


def _add(records, requests):
    """Probes that were asked for in this order."""
    with records.transaction() as connection:
        for at, request in enumerate(requests):
            own = {"id": f"pb_{at}", "created_at": at, "finished_at": at, "request": "no JSON"}
            connection.execute(runs.insert().values(**ROW, **own))
            for name, value in probes._marks(request).items():
                mark = {"run_id": f"pb_{at}", "name": name, "value": value, "created_at": at}
                connection.execute(labels.insert().values(**mark))


def _latest(records):
    with records.reading() as connection:
        return probes._latest(connection, SPLIT)


def test_of_each_metric_the_latest_usual_probes_count(records):
    asked = [["bleu", "meteor"], ["cider_d"], ["bleu"], ["cider_d"]]
    usual = [ProbesRequest(dataset="d/test", metrics=metrics) for metrics in asked]
    _add(records, [*usual, ProbesRequest(dataset="d/test", probes=["human"])])
    assert _latest(records) == ["pb_3", "pb_2", "pb_0"]


def test_few_are_looked_at_however_many_there_are(records):
    usual = [ProbesRequest(dataset="d/test")] * 30
    _add(records, [*usual, *[ProbesRequest(dataset="d/test", tokenizer="none")] * 100])
    with records.reading() as connection, watched(records.engine) as statements:
        assert probes.find_health(connection, SPLIT) is None
    assert len(statements) == 2
    assert not any("runs.request" in statement.text for statement in statements)
