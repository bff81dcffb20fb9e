"""The numbers at /metrics."""

import time
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import generate_latest

import empty_record
from service.http import telemetry
from service.http.telemetry import Telemetry
from service.works.queueing import AtOnce
from service.works.records import Records


class LongQueue(AtOnce):
    """It takes a moment to count."""

    def __init__(self):
        super().__init__(lambda _: None)
        self.counted = 0

    def waiting(self):
        time.sleep(0.02)
        self.counted += 1
        return {"metrics": self.counted}


def test_counting_takes_a_small_part_of_the_time_however_often_it_is_asked(tmp_path, monkeypatch):
    records, queue = Records(empty_record.at(tmp_path)), LongQueue()
    told = Telemetry(records, queue)
    with ThreadPoolExecutor(4) as pool:
        pages = set(pool.map(lambda _: _counts(told), range(20)))
    assert (queue.counted, len(pages)) == (1, 1)
    monkeypatch.setattr(telemetry, "_KEPT_SECONDS", 0.0)
    other = Telemetry(records, queue)
    assert 'prescore_queued{queue="metrics"} 2.0' in _counts(other)
    assert 'prescore_queued{queue="metrics"} 3.0' in _counts(other)
    records.engine.dispose()


def _counts(told):
    lines = generate_latest(told.registry).decode().splitlines()
    return "\n".join(line for line in lines if line.startswith("prescore_queued"))
