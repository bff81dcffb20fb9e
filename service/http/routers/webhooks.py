"""/v1/webhooks: URLs that get messages about a team's runs."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from prescore.models.webhooks import WEBHOOK_ID, Webhook, WebhookPage, WebhookSecret
from service.contract import errors
from service.contract.api.urls import WebhookRequest
from service.http import openapi
from service.http.dependencies import AppParts, Service
from service.http.service_route import ServiceRoute
from service.webhooks import registry, sender

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=ServiceRoute)
_LINKED = openapi.describe_links(
    "id", "get_webhook", "test_webhook", "rotate_webhook", "delete_webhook"
)
_PLACE = "/v1/webhooks/{}"
WebhookIdentity = Annotated[
    str,
    Path(description="The `id` of the webhook.", json_schema_extra={"pattern": WEBHOOK_ID}),
]


@router.post(
    "",
    status_code=201,
    operation_id="make_webhook",
    summary="Let a URL be told of runs",
    response_description="The webhook, with the secret that is told this once.",
    responses={
        201: {**openapi.describe_headers("Location"), **_LINKED},
        **openapi.describe_refusals(errors.Conflict, errors.UrlRefused),
    },
)
def make_webhook(
    asked: WebhookRequest, service: Service, request: Request, response: Response
) -> WebhookSecret:
    """The URL gets a message about each run of your team that ends from now on, at least once. A
    message that does not arrive is sent again for three days.
    """
    _check(service, asked.url)
    made = registry.create_webhook(service.records, asked, _place(request), service.asker)
    response.headers["Location"] = _PLACE.format(made.id)
    return made


def _place(request: Request) -> str:
    """The URL under which who asks knows this service; its name was judged to be ours."""
    return str(request.base_url).rstrip("/")[:300]


def _check(service: AppParts, url: str) -> None:
    try:
        service.outgoing.check(url)
    except errors.UrlRefused as error:
        raise errors.UrlRefused(error.detail, pointer="/url") from None


@router.get(
    "",
    operation_id="list_webhooks",
    summary="List the webhooks",
)
def list_webhooks(service: Service) -> WebhookPage:
    """Webhooks of your team, the latest first."""
    return WebhookPage(items=registry.list_webhooks(service.records), next=None)


@router.get(
    "/{id}",
    operation_id="get_webhook",
    summary="See how a webhook does",
    responses=openapi.describe_refusals(errors.NotFound),
)
def get_webhook(id: WebhookIdentity, service: Service) -> Webhook:
    """Its state, the messages that wait, and the latest errors."""
    return registry.read_webhook(service.records, id)


@router.post(
    "/{id}/test",
    status_code=202,
    operation_id="test_webhook",
    summary="Send a test to a webhook",
    responses={
        202: openapi.describe_headers("Location"),
        **openapi.describe_refusals(errors.NotFound, errors.UnsupportedMedia),
    },
)
def test_webhook(id: WebhookIdentity, service: Service, response: Response) -> Webhook:
    """The event `webhook.test`, sent once within seconds: then `delivered_at` or `errors` of the
    webhook tell what came of it. One that is disabled becomes active again if it arrives.
    """
    sender.add_test_message(service.records, id)
    response.headers["Location"] = _PLACE.format(id)
    return registry.read_webhook(service.records, id)


@router.post(
    "/{id}/rotate",
    operation_id="rotate_webhook",
    summary="Give a webhook another secret",
    response_description="The webhook, with the secret that is told this once.",
    responses=openapi.describe_refusals(errors.NotFound, errors.Conflict, errors.UnsupportedMedia),
)
def rotate_webhook(id: WebhookIdentity, service: Service) -> WebhookSecret:
    """Both secrets sign deliveries for a day, so that receivers can change theirs."""
    return registry.rotate_secret(service.records, id, service.asker)


@router.delete(
    "/{id}",
    status_code=204,
    operation_id="delete_webhook",
    summary="Delete a webhook",
    response_class=Response,
    responses=openapi.describe_refusals(errors.NotFound),
)
def delete_webhook(id: WebhookIdentity, service: Service) -> Response:
    """Messages that wait for it are dropped."""
    registry.delete_webhook(service.records, id, service.asker)
    return Response(status_code=204)
