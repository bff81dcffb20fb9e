"""URLs that the service itself sends requests to, as a pattern, and the requests that name one.

The pattern is less than RFC 3986 allows: what programs read differently is not in it, so that all
of them read the same.
"""

from typing import Annotated, get_args

from pydantic import Field

from prescore.models.choices import WebhookFormat
from prescore.models.webhooks import WebhookEvent
from service.contract.api.field_types import Digest
from service.contract.api.request_parts import StrictModel

LONGEST = 2000  # characters
PORTS = frozenset((443, 8443))
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LAST = "[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"  # after a last number, it could be an address
NAME = rf"({_LABEL}\.)+{_LAST}"
TARGET = r"[/?][!$-\[\]-~]*"  # ASCII without blank, quote, # and backslash
PATTERN = rf"^https://{NAME}(:(443|8443))?({TARGET})?$"
EXPECTED = (
    f"https://host/path of at most {LONGEST} characters in ASCII, without user, password and #; a "
    "name in another alphabet is written xn--…, and other characters %XX"
)

OutgoingUrl = Annotated[
    str,
    Field(
        max_length=LONGEST,
        json_schema_extra={"pattern": PATTERN},
        description="https, a public host by its full name, port 443 or 8443. An operator may name "
        "others in `PRESCORE_OUTGOING_ALLOW`.",
        examples=["https://hooks.example.com/prescore"],
    ),
]

EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)
USUAL_EVENTS: list[WebhookEvent] = ["run.succeeded", "run.failed"]
TEST_EVENT = "webhook.test"  # that is sent where somebody asks for it


def shorten_url(url: str) -> str:
    """A URL without what may be a password: the host, and the last characters."""
    _, _, rest = url.partition("://")
    host, _, path = rest.replace("?", "/", 1).partition("/")
    return f"https://{host}/…{path[-4:] if len(path) >= 16 else ''}"


class WebhookRequest(StrictModel):
    """URL of a webhook, and the events that it is told."""

    url: OutgoingUrl
    events: Annotated[
        list[WebhookEvent],
        Field(
            min_length=1,
            max_length=len(EVENTS),
            description="`run.…`: a run of any kind has ended. `verdict.…`: an evaluation with "
            "gates has ended.",
        ),
    ] = USUAL_EVENTS
    format: WebhookFormat = Field(
        default="standard",
        description="`standard`: JSON, signed as [Standard "
        "Webhooks](https://www.standardwebhooks.com) describes. `slack`: one line of text for an "
        "incoming webhook of Slack, or of what takes the same.",
    )


class DatasetUrlRequest(StrictModel):
    """URL of a dataset's tar, and the digest that it must have."""

    url: OutgoingUrl
    digest: Digest = Field(description="The tar's SHA-256: what is found is this, or refused.")
