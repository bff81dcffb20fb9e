"""Access to operations: meters of uploads, and a table of scopes. Routes that are missing from it
need the scope `read`.
"""

import asyncio
from collections.abc import Mapping

from fastapi import Request, Response

from service.contract.askers import Asker, Scope
from service.contract.errors import Forbidden, PrescoreError
from service.contract.quotas import Quotas
from service.engine import quotas as usage
from service.http import problems
from service.http.dependencies import AppParts, find_asker

OPEN = frozenset({"/", "/docs", "/openapi.json", "/livez", "/readyz", "/v1/limits"})
OPEN_TO_POST = frozenset({"/v1/keys/oidc"})  # the body says who asks
OPEN_PAGE = "/ui/"  # what its views show is asked of /v1; to sign in, the body says who asks
OPEN_HERE = frozenset({"/metrics"})  # to programs on this machine

_SUBMIT = (
    *("submit_evaluation", "cancel_evaluation", "change_evaluation", "delete_evaluation"),
    *("submit_comparison", "cancel_comparison", "change_comparison", "delete_comparison"),
    *("submit_probes", "cancel_probes", "change_probes", "delete_probes"),
    *("submit_training", "cancel_training", "change_training", "delete_training"),
    *("submit_study", "cancel_study", "change_study", "delete_study"),
    *("upload_checkpoint", "delete_checkpoint", "upload_columns", "delete_columns"),
    *("create_upload", "append_upload", "resume_upload", "delete_upload"),
    *("list_uploads", "get_upload", "place_parts"),
)
_PUBLISH = ("upload_dataset", "fetch_dataset", "change_dataset", "delete_dataset")
_ADMIN = (
    *("make_webhook", "list_webhooks", "get_webhook", "test_webhook", "rotate_webhook"),
    *("delete_webhook", "list_audit", "list_keys"),
)

NEEDED: Mapping[str, Scope] = {
    **dict.fromkeys(_SUBMIT, Scope.SUBMIT),
    **dict.fromkeys(_PUBLISH, Scope.PUBLISH),
    **dict.fromkeys(_ADMIN, Scope.ADMIN),
}


def needs_no_key(method: str, path: str) -> bool:
    """True if the request needs no key. OPTIONS describes the interface, and nobody's data."""
    return (
        method == "OPTIONS"
        or path in OPEN
        or path.startswith(OPEN_PAGE)
        or (method == "POST" and path in OPEN_TO_POST)
    )


def require_scope(asker: Asker, needed: Scope, what: str = "this") -> None:
    """Forbidden where the key does not have the scope."""
    if not asker.scope.includes(needed):
        raise Forbidden(f"{what} needs a key with the scope {needed}, found one with {asker.scope}")


METERED_OPERATIONS = frozenset(
    {
        *("upload_checkpoint", "upload_columns", "upload_dataset", "fetch_dataset"),
        *("create_upload", "append_upload", "place_parts"),
    }
)
_FIRST_OF_OURS = 500  # statuses from here on are the service's fault


class UploadMeter:
    """Bytes that one request may bring, and those that have come."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.received = 0


def find_meter(request: Request) -> UploadMeter:
    """Find the meter of a request; one that counts for nobody where its team has no limit."""
    found = getattr(request.state, "meter", None)
    return found if isinstance(found, UploadMeter) else UploadMeter(None)


async def open_meter(request: Request) -> UploadMeter | None:
    """A meter where the team's uploads are limited. LimitReached where nothing is left."""
    service = request.app.state.parts
    assert isinstance(service, AppParts)
    asker = find_asker(request)
    quotas = service.allowed.of(asker)
    if not _is_limited(quotas):
        return None
    length = request.headers.get("content-length", "")
    announced = int(length) if length.isdigit() else None
    records = service.records.of(asker.team)
    meter = UploadMeter(
        await asyncio.to_thread(usage.check_upload_quota, records, quotas, announced)
    )
    request.state.meter = meter
    return meter


async def count_upload(
    request: Request, meter: UploadMeter, answered: Response | Exception
) -> None:
    """Count what has come, unless it was lost by our fault."""
    status = answered.status_code if isinstance(answered, Response) else _status(answered)
    if status >= _FIRST_OF_OURS or not meter.received:
        return
    service = request.app.state.parts
    await asyncio.to_thread(_count_bytes, service, find_asker(request).team, meter.received)


def _count_bytes(service: AppParts, team: str, size: int) -> None:
    with service.records.of(team).transaction() as connection:
        usage.add_usage(connection, team, "upload_bytes", size)


def _is_limited(quotas: Quotas) -> bool:
    return quotas.upload_bytes is not None or quotas.stored_bytes is not None


def _status(error: Exception) -> int:
    is_known = isinstance(error, PrescoreError)
    return problems.find_status(type(error)) if is_known else _FIRST_OF_OURS  # type: ignore[arg-type]
