"""One line of text, as Slack's incoming webhooks take it, and others that copy them.

Labels and gates are other people's texts. In Slack `<!channel>` calls everybody and `<url|text>`
is a link that shows another one; elsewhere `@all` and `[text](url)` do the same. So of such texts
only letters, digits and a few signs are shown.
"""

import json
import re

from prescore.models.webhooks import WebhookEvent
from service.runs.outgoing.messages import Ended

_SCORES = 6
_LABELS = ("branch", "commit", "run")  # by which a team knows its runs
_LABEL = 60  # characters
_POWERFUL = re.compile(r"[^\w .,/+=<>()%-]")  # \w: letters of all alphabets, digits, _
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def message(run: Ended, event: WebhookEvent, place: str, pages: str) -> str:
    """JSON; `place` is the service's own URL, `pages` that of its page."""
    return json.dumps({"text": _line(run, event, run.page(pages) or f"{place}{run.path}")})


def _line(run: Ended, event: WebhookEvent, url: str) -> str:
    told = (
        f"{run.kind} {run.id} on {plain(run.dataset.replace('@', ' '))}: {event.rpartition('.')[2]}"
    )
    failed = [gate for gate, verdict in run.gates if verdict not in ("passed", None)]
    parts = [told.replace("not_comparable", "not comparable")]
    if failed:
        parts.append(f"not passed: {', '.join(map(plain, failed))}")
    known = [(name, value) for name, value in run.scores.items() if value is not None]
    parts += [f"{plain(name)} {value:.4g}" for name, value in known[:_SCORES]]
    labels = [(name, run.labels[name]) for name in _LABELS if name in run.labels]
    parts += [f"{name} {plain(text[:_LABEL])}" for name, text in labels]
    return f"{'; '.join(parts)} <{url}|open>"


def plain(text: str) -> str:
    """Other people's text, without power over what shows it."""
    return _POWERFUL.sub("?", text).translate(_ENTITIES)
