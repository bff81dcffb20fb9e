"""An attempt at a certain task: workers take the one whose turn it is."""

from service.engine import leases
from service.engine.leases import Lease
from service.engine.records import Records


def take(records: Records, key: str, worker: str) -> Lease | None:
    with records.transaction() as connection:
        return leases.begin_attempt(records, connection, key, worker)
