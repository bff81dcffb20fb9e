"""/v1/audit: changes, with the time and the key of each."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.engine import Row

from prescore.models.keys import Change, ChangeAction, ChangePage
from service.access import audit
from service.access.audit import AuditQuery
from service.contract import errors
from service.contract.api.field_types import moment
from service.http import openapi
from service.http.dependencies import Service
from service.http.routers.request_parameters import Cursor, Digits
from service.http.service_route import ServiceRoute
from service.runs import run_lists

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=ServiceRoute)
_LIST = "audit"
_OBJECT = r"^[^\x00]*$"


@router.get(
    "",
    operation_id="list_audit",
    summary="See who changed what",
    responses=openapi.describe_refusals(errors.InvalidCursor),
)
def list_audit(
    service: Service,
    action: Annotated[ChangeAction | None, Query(description="Only these changes.")] = None,
    object: Annotated[
        str | None,
        Query(
            description="Only changes of this run, upload, `name@version` of a dataset, or key.",
            max_length=300,
            pattern=_OBJECT,
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200), Digits] = 50,
    cursor: Cursor = None,
) -> ChangePage:
    """Publications, changes, deletions and cancellations for others, with keys; the latest first.
    Changes are kept for `PRESCORE_AUDIT_DAYS`.
    """
    before = None if cursor is None else run_lists.read_cursor(_LIST, cursor, int)[0]
    asked = AuditQuery(action, object, limit, before)
    found, last = audit.read_changes(service.records, asked)
    following = None if last is None else run_lists.write_cursor(_LIST, last)
    return ChangePage(items=[_entry(row) for row in found], next=following)


def _entry(row: Row[Any]) -> Change:
    return Change(
        at=moment(row.at),
        team=row.team,
        key=row.key,
        address=row.address,
        action=row.action,
        object=row.object,
        detail=json.loads(row.detail),
    )
