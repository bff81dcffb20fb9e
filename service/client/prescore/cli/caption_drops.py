"""Images that fell most against a gate's baseline, as reports show them."""

from typing import NamedTuple

from prescore.cli.text import align_rows, format_number, shorten
from prescore.client import Client
from prescore.errors import PrescoreClientError
from prescore.models import CaptionDrops, Evaluation, ImageCompared
from prescore.models.comparisons import MOST_DROPS
from prescore.plain_text import quoted

_CAPTION = 200  # characters that are shown
_IMAGE = 100


class DropRow(NamedTuple):
    """An image in texts that are cut, and not yet made plain; `url` leads to the page."""

    image: str
    scores: str
    before: str
    now: str
    url: str


def read_drops(client: Client, evaluation: Evaluation) -> CaptionDrops | None:
    """Read them of a run whose gates have a baseline; None where the service does not say them, as
    to a key that may not read: a report is made without them.
    """
    scores = [score for gate in evaluation.gates for score in gate.scores.values()]
    if not any(score.evaluation for score in scores):
        return None
    try:
        return client.drops(evaluation.id)
    except PrescoreClientError:
        return None


def list_rows(drops: CaptionDrops | None, page: str) -> list[DropRow]:
    """List a row for each image; `page`: the URL of the evaluation's page."""
    if drops is None:
        return []
    return [
        DropRow(
            image=shorten(each.image, _IMAGE),
            scores=_format_scores(each.scores.get(drops.metric or "")),
            before=shorten(each.b, _CAPTION),
            now=shorten(each.a, _CAPTION),
            url=drops.build_image_url(page, each.image),
        )
        for each in drops.images[:MOST_DROPS]
    ]


def format_heading(drops: CaptionDrops) -> str:
    return f"images that fell most by {drops.metric} against {drops.baseline}"


def format_lines(drops: CaptionDrops | None, page: str) -> list[str]:
    """Format the images as lines of plain text; none where there are no images."""
    if drops is None or not drops.images:
        return []
    lines = [quoted(format_heading(drops))]
    for row in list_rows(drops, page):
        captions = [("before", row.before), ("now", row.now)]
        lines += align_rows([(row.image, row.scores)], indent="  ")
        lines += [*align_rows(captions, indent="    "), f"    {quoted(row.url)}"]
    return lines


def _format_scores(scores: ImageCompared | None) -> str:
    return "" if scores is None else f"{format_number(scores.b)} -> {format_number(scores.a)}"
