"""/v1/datasets: immutable versions of a name."""

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from service import datasets
from service.contract.schemas import DatasetOut, Page
from service.dependencies import Service
from service.uploads import receive

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])
MAX_BYTES = 50_000_000_000


@router.put("/{name}", response_model=DatasetOut, responses={201: {"model": DatasetOut}})
async def put(name: str, request: Request, service: Service) -> Response:
    """A bundle as application/x-tar. 201: a new version. 200: these bytes are a version already."""
    datasets.check_name(name)
    async with receive(request, service.blobs, MAX_BYTES) as upload:
        facts = await asyncio.to_thread(datasets.judge, upload.path)
        digest = await asyncio.to_thread(upload.commit)
    answer, new = await asyncio.to_thread(datasets.add, service.records, name, digest, facts)
    return JSONResponse(answer.model_dump(), 201 if new else 200)


@router.get("")
def every(service: Service) -> Page:
    return Page(items=datasets.latest(service.records), next=None)


@router.get("/{reference}")
def get(reference: str, service: Service) -> DatasetOut:
    return datasets.get(service.records, reference)
