"""What each operation of the interface needs: the table of scopes. What it lacks needs `read`."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.contract.askers import Asker, Scope
from service.contract.errors import Forbidden
from service.http.dependencies import asker_of
from service.http.entrance import metering

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

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


class ScopedRoute(APIRoute):
    """A route for those whose key has the scope that it needs; told before a body is read. Routes
    that do more override `handler`.
    """

    def handler(self) -> Handler:
        return super().get_route_handler()

    def get_route_handler(self) -> Handler:
        handle = self.handler()
        if all(is_open(method, self.path) for method in self.methods or ()):
            return handle
        needed = NEEDED.get(self.operation_id or "", Scope.READ)

        async def allowed(request: Request) -> Response:
            require(asker_of(request), needed)
            return await handle(request)

        async def metered(request: Request) -> Response:
            require(asker_of(request), needed)
            meter = await metering.before(request)
            if meter is None:
                return await handle(request)
            try:
                answer = await handle(request)
            except Exception as error:
                await metering.after(request, meter, error)
                raise
            await metering.after(request, meter, answer)
            return answer

        return metered if self.operation_id in metering.UPLOADS else allowed


def is_open(method: str, path: str) -> bool:
    """Whether this needs no key. OPTIONS tells what the interface can, and nothing of anybody."""
    return (
        method == "OPTIONS"
        or path in OPEN
        or path.startswith(OPEN_PAGE)
        or (method == "POST" and path in OPEN_TO_POST)
    )


def require(asker: Asker, needed: Scope, what: str = "this") -> None:
    """Forbidden where the key does not have the scope."""
    if not asker.scope.includes(needed):
        raise Forbidden(f"{what} needs a key with the scope {needed}, found one with {asker.scope}")
