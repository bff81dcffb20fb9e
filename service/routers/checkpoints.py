"""/v1/checkpoints: uploads by hash, raw and streamed."""

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from service import checkpoints
from service.contract.errors import DigestMismatch, NotFound
from service.contract.schemas import CheckpointOut, Digest
from service.dependencies import Service
from service.uploads import receive

router = APIRouter(prefix="/v1/checkpoints", tags=["checkpoints"])
MAX_BYTES = 50_000_000_000


@router.head("/{digest}")
def head(digest: Digest, service: Service) -> Response:
    if not checkpoints.exists(service.records, service.blobs, digest):
        raise NotFound(f"no checkpoint {digest}")
    return Response()


@router.put("/{digest}", response_model=CheckpointOut, responses={201: {"model": CheckpointOut}})
async def put(digest: Digest, request: Request, service: Service) -> Response:
    """201: stored. 200: it was there already, and the body was not read."""
    known = await asyncio.to_thread(checkpoints.exists, service.records, service.blobs, digest)
    if not known:
        async with receive(request, service.blobs, MAX_BYTES) as upload:
            if upload.digest != digest:
                raise DigestMismatch(f"the body's SHA-256 is {upload.digest}, not {digest}")
            facts = await asyncio.to_thread(checkpoints.judge, upload.path)
            await asyncio.to_thread(upload.commit)
        await asyncio.to_thread(checkpoints.add, service.records, digest, upload.size, facts)
    answer = await asyncio.to_thread(checkpoints.get, service.records, digest)
    return JSONResponse(answer.model_dump(), 200 if known else 201)


@router.get("/{digest}")
def get(digest: Digest, service: Service) -> CheckpointOut:
    return checkpoints.get(service.records, digest)
