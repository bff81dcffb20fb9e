"""What the page shows in its tests: evaluations of a small split, some of them hostile."""

from helpers import hostile_text
from helpers.fleet import bundle_of, checkpoint, upload
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
        "hostile": submitted(client, captions=powerful(), labels={"who": "hostile"}),
    }


def powerful() -> list[dict[str, str]]:
    """Captions of which some are hostile text."""
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


_COLOURS = ("red", "green", "white")
_FIGURES = ("circle", "square", "star", "cross", "line")
_SHARES = {  # of images that are described rightly, by step; the fourth of `slow` gains little
    "steady": (0.1, 0.3, 0.6, 0.95, 0.96),
    "slow": (0.1, 0.3, 0.58, 0.6, 0.95),
}
FIGURES = 200  # images


def _describe(at: int, turn: int = 0) -> str:
    """A figure; `turn`: in another colour than it has."""
    colour = _COLOURS[(at + turn) % len(_COLOURS)]
    return f"a {colour} {_FIGURES[at % len(_FIGURES)]} on field {at % 7}"


def two_trainings(client) -> dict[str, list[str]]:
    """Evaluations of two trainings on `figures/test` by run and step. What they get wrong has a
    wrong colour from the third step on, and is said in the same words before.
    """
    people = {f"{at}.png": [_describe(at), f"{_describe(at)} here"] for at in range(FIGURES)}
    assert client.put("/v1/datasets/figures", content=bundle_of(people)).status_code == 201
    return {
        run: [_submit_share(client, run, step, share) for step, share in enumerate(shares, 1)]
        for run, shares in _SHARES.items()
    }


def _submit_share(client, run: str, step: int, share: float) -> str:
    said = [
        _describe(at) if at < share * FIGURES else _describe(at, 1) if step > 2 else "it is one"
        for at in range(FIGURES)
    ]
    captions = [{"image": f"{at}.png", "caption": text} for at, text in enumerate(said)]
    return submitted(
        client,
        dataset="figures/test",
        captions=captions,
        labels={"run": run, "step": str(step)},
        postgen=["cider_d", "bleu"],
    )


# Sums up layout shifts of a page in `window.shifted`.
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });"""
