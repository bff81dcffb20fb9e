"""What the page shows in its tests: evaluations of a small split, some of them hostile."""

from helpers import hostile_text
from helpers.fleet import checkpoint, upload
from helpers.submissions import submit

IMAGES = 40
CAPTIONS = [{"image": f"{at}.jpg", "caption": "w3 w4 w5"} for at in range(IMAGES)]
LABEL = "<img src=x onerror=document.title='taken'> \u202e right to left"[:60]
_DECODED = {"decoding": {"beam": 1, "max_words": 8}}


def submitted(client, **more) -> str:
    """The id of an evaluation; of the same captions for all images, unless others are given."""
    given = {} if "checkpoint" in more else {"captions": CAPTIONS}
    return submit(client, **{"postgen": ["cider_d"], **given, **more})


def evaluations(client) -> dict[str, str]:
    given = upload(client, checkpoint(1))
    return {
        "captions": submitted(client, labels={"branch": LABEL}),
        "checkpoint": submitted(client, checkpoint=given, **_DECODED),
        "passed": submitted(client, gates=["cider_d >= 0"], labels={"branch": "main"}),
        "failed": submitted(client, gates=["cider_d >= 9"], labels={"branch": "dev"}),
        "hostile": submitted(client, captions=_powerful(), labels={"who": "hostile"}),
    }


def _powerful() -> list[dict[str, str]]:
    said = [*hostile_text.HOSTILE.values(), hostile_text.REAL]
    changed = zip(CAPTIONS, said, strict=False)
    return [{**each, "caption": text} for each, text in changed] + CAPTIONS[len(said) :]


def training(client, steps: int = 3) -> list[str]:
    """The evaluations of the checkpoints of one run, by their steps."""
    return [
        submitted(
            client,
            checkpoint=upload(client, checkpoint(10 + step)),
            labels={"run": "warm", "step": str(step)},
            postgen=["bleu", "cider_d"],
            **_DECODED,
        )
        for step in range(1, steps + 1)
    ]


# Sums up layout shifts of a page in `window.shifted`.
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });"""
