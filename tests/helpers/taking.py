"""An attempt at a certain work: workers take the one whose turn it is."""

from service.works import leases
from service.works.leases import Lease
from service.works.records import Records


def take(records: Records, key: str, worker: str) -> Lease | None:
    with records.transaction() as connection:
        return leases.begin(records, connection, key, worker)
