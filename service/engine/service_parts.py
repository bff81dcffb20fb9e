"""Parts of the service as one argument: database, blobs, queue and assets."""

from dataclasses import dataclass, field, replace
from typing import Self

from service.contract.askers import EVERYBODY, Asker
from service.contract.assets import AssetFolders
from service.contract.settings import PROTECTED_LABELS, Settings
from service.engine import database, task_queue
from service.engine.blobs import Blobs, open_blobs
from service.engine.records import Records
from service.engine.task_queue import RedisQueue, WakeUpQueue


@dataclass(frozen=True)
class ServiceParts:
    records: Records
    blobs: Blobs
    queue: WakeUpQueue
    places: AssetFolders  # of assets
    speed: float = field(default=1.0, kw_only=True)  # of the workers' models, as settings say
    asker: Asker = field(default=EVERYBODY, kw_only=True)
    protected: frozenset[str] = field(default=PROTECTED_LABELS, kw_only=True)  # labels NAME=VALUE
    public_url: str | None = field(default=None, kw_only=True)  # where people reach the page

    def asked_by(self, asker: Asker) -> Self:
        """Parts for a request of this asker: its record shows the rows of the asker's team."""
        return replace(self, asker=asker, records=self.records.of(asker.team))


def connect_parts(settings: Settings, *, hurried: bool = False) -> ServiceParts:
    """Open all parts. `hurried`: a server that falls silent delays nothing for two seconds."""
    engine = database.open_database(
        settings.database, database.HURRIED if hurried else database.PATIENCE
    )
    database.check_revision(engine)
    connection = task_queue.connect_redis(settings.redis)
    task_queue.check_eviction(connection)
    return ServiceParts(
        Records(engine),
        open_blobs(settings.blob_url, settings.home, settings.blob_public_url, hurried=hurried),
        RedisQueue(connection),
        AssetFolders.of(settings),
        speed=settings.inference_speed,
        protected=settings.protected,
        public_url=settings.public_url,
    )
