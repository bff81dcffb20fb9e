"""Datasets that the service fetches from a URL."""

from pydantic import Field

from service.contract.api.outgoing.urls import OutgoingUrl
from service.contract.api.strict import Strict
from service.contract.api.texts import Digest


class DatasetByUrl(Strict):
    """Where a dataset's tar is, and which one it is."""

    url: OutgoingUrl
    digest: Digest = Field(description="The tar's SHA-256: what is found is this, or refused.")
