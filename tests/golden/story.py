"""A story of requests: every route, every kind of run, every metric.

`<name.member>` in a path, a header or a body stands for what the answer called `name` said: of a
run, its answer at the end, its `etag`, its `last` event and the number `before` that; of a file,
its `digest`. Captions are made up of a few words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

IMAGES, FEW_IMAGES, MANY_IMAGES = 40, 5, 300
CHECKPOINTS = tuple(
    f"{architecture}-{cell}"
    for architecture in ("init", "pre", "par", "merge")
    for cell in ("gru", "lstm")
)


@dataclass(frozen=True)
class Step:
    """One request. `body` is sent as JSON, `text` as it is, `file` by its name; `settles`: asked
    again until nothing is under way any more.
    """

    name: str
    method: str
    path: str
    body: Any = None
    text: str | None = None
    file: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    settles: bool = False


def _get(name: str, path: str, *, settles: bool = False, **headers: str) -> Step:
    return Step(name, "GET", path, headers=_named(headers), settles=settles)


def _post(name: str, path: str, body: Any = None, **headers: str) -> Step:
    return Step(name, "POST", path, body=body, headers=_named(headers))


def _put(name: str, path: str, file: str) -> Step:
    return Step(name, "PUT", path, file=file)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}


# What is said of images.

_SIZES, _WHO = ("big", "red"), ("man", "dog", "cat")
_VERBS = ("runs", "running", "sits")
_DOES, _WHERE = ("runs", "sits", "is running"), ("on the grass", "on a red cat", "")


def sentence(number: int) -> str:
    words = (
        *("a", _SIZES[number % 2], _WHO[number % 3]),
        *(_DOES[number // 2 % 3], _WHERE[number // 3 % 3]),
    )
    return " ".join(filter(None, words))


def references(image: int) -> list[str]:
    return [sentence(image), sentence(7 * image + 1), sentence(5 * image + 3)]


PEOPLE = {f"{image}.jpg": references(image) for image in range(IMAGES)}
MORE_PEOPLE = {**PEOPLE, "late.jpg": ["a dog sits on a cat"]}
TRAINING = [sentence(number) for number in range(6)] + ["the man runs", "a cat"]
FEW = {  # one reference each: aggregates over an image's are the same, and the files small
    f"{image}.jpg": [f"w{2 + image} w{3 + 2 * image} w{4 + image % 2}"]
    for image in range(FEW_IMAGES)
}
MANY = {f"{image}.jpg": [f"w{2 + image % 4} w{2 + image % 3}"] for image in range(MANY_IMAGES)}
VECTORS = [
    "10 3",
    *(
        f"{word} {(5 * at % 7 - 3) / 4} {(3 * at % 5 - 2) / 2} {(at % 3 - 1) / 2}"
        for at, word in enumerate([*_WHO, *_VERBS, *_SIZES, "grass", "w3"], 1)
    ),
]


def _said(captions: list[str]) -> list[dict[str, str]]:
    return [{"image": f"{at}.jpg", "caption": text} for at, text in enumerate(captions)]


def _shortened(text: str, image: int) -> str:
    """Without one of its words."""
    words = text.split()
    del words[image % len(words)]
    return " ".join(words)


GOOD = _said([_shortened(sentence(image), image) for image in range(IMAGES)])
FAIR = _said([sentence(image + image % 3) for image in range(IMAGES)])
POOR = _said([_shortened(sentence(11 * image + 2), image) for image in range(IMAGES)])
WRITTEN = _said(
    [
        {0: "", 1: "A Red Cat,\u2028running!", 2: "zebras"}.get(
            image, f"{sentence(image + 1).capitalize()}."
        )
        for image in range(IMAGES)
    ]
)
BY_ID = [{"image": str(900 + at), "caption": one["caption"]} for at, one in enumerate(FAIR)]
_STRANGE = ("zebras", "seven", "moon", "paper", "cloud", "spoon")


def _confused(seed: int) -> list[dict[str, str]]:
    """Captions of other images, which from some word on are of nothing."""
    found = []
    for image in range(IMAGES):
        words = sentence(seed * image + 5).split()
        for at in range((image + seed) % 4, len(words)):
            words[at] = _STRANGE[(image + at * seed) % len(_STRANGE)]
        found.append(" ".join(words))
    return _said(found)


RATED = [
    {"image": f"{at}_x.jpg", "candidate": text, "references": references(at), "ratings": ratings}
    for at in range(100, 112)
    for text, ratings in (
        (sentence(at), [4, 3.5]),
        (_shortened(sentence(11 * at), at), [1, 2]),
    )
]

# What is asked.

AGREEING = "merge-lstm"
EVERY_METRIC = [
    *("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider_d", "cider", "meteor", "spice"),
    *("spider", "wmd", "wmd_distance", "wmd_unit", "wmd_unit_distance", "bertscore", "nneval"),
    *("caption_length", "words_used", "distinct_1", "distinct_2", "distinct_3", "distinct_4"),
    *("entropy_1", "entropy_2", "from_training"),
]
_QUICK = {"beam": 1, "max_words": 8}
_OF_MODEL = {"dataset": "few/test", "tokenizer": "none", "decoding": _QUICK}
_PICTURES = "pictures/test"
_OF_SAYINGS = {"dataset": "sayings/test", "tokenizer": "none"}
_LONG = {"beam": 60, "min_words": 900, "max_words": 1000}


def _evaluate(name: str, body: Mapping[str, Any], **headers: str) -> Step:
    return _post(name, "/v1/evaluations", dict(body), **headers)


def _captions(name: str, captions: list[dict[str, str]], **more: Any) -> Step:
    return _evaluate(name, {**_OF_SAYINGS, "captions": captions, **more})


def _model(name: str, model: str, headers: Mapping[str, str] | None = None, **more: Any) -> Step:
    body = {"checkpoint": f"<{model}.model.digest>", **_OF_MODEL, **more}
    return _evaluate(name, body, **(headers or {}))


_UPLOADS = [
    _put("sayings", "/v1/datasets/sayings", "sayings.tar"),
    _put("sayings-again", "/v1/datasets/sayings", "sayings.tar"),
    _put("pictures", "/v1/datasets/pictures", "pictures.tar"),
    _put("few", "/v1/datasets/few", "few.tar"),
    _put("many", "/v1/datasets/many", "many.tar"),
    _put("agreed", "/v1/datasets/agreed", "agreed.tar"),
    _put("versions-1", "/v1/datasets/versions", "sayings.tar"),
    _put("versions-2", "/v1/datasets/versions", "more-sayings.tar"),
    _put("broken-dataset", "/v1/datasets/broken", "broken.tar"),
    _put("badly-named-dataset", "/v1/datasets/a b", "few.tar"),
    Step("has-not", "HEAD", "/v1/checkpoints/<init-gru.model.digest>"),
    *(
        _put(f"upload-{name}", f"/v1/checkpoints/<{name}.model.digest>", f"{name}.model")
        for name in CHECKPOINTS
    ),
    _put("upload-again", "/v1/checkpoints/<init-gru.model.digest>", "init-gru.model"),
    _put("upload-last", "/v1/checkpoints/<last.model.digest>", "last.model"),
    _put("upload-narrow", "/v1/checkpoints/<narrow.model.digest>", "narrow.model"),
    _put("other-bytes", "/v1/checkpoints/<nothing.model.digest>", "pre-gru.model"),
    _put("no-checkpoint", "/v1/checkpoints/<nothing.model.digest>", "nothing.model"),
    _put("upload-columns", "/v1/columns/<few.columns.digest>", "few.columns"),
    _put("no-columns", "/v1/columns/<nothing.model.digest>", "nothing.model"),
]
_OF_CAPTIONS = [
    _captions(
        "everything",
        WRITTEN,
        postgen=EVERY_METRIC,
        tokenizer="ptb",
        labels={"branch": "main", "seed": "0"},
    ),
    _captions("good", GOOD, postgen=EVERY_METRIC[:8], labels={"branch": "main", "seed": "1"}),
    _captions(
        "fair",
        FAIR,
        postgen=["bleu", "cider_d", "cider", "wmd", "bertscore", "variety"],
        bertscore={"idf": True, "baseline": 0.25},
        labels={"branch": "topic"},
    ),
    _captions("poor", POOR, postgen=["bleu", "cider_d", "variety", "wmd"]),
    _captions("by-id", BY_ID, postgen=["rouge_l"]),
    _captions("unavailable", GOOD, postgen=["nneval", "bleu_1"]),
    _captions("part", GOOD[5:15], postgen=["bleu", "cider_d", "cider"], subset=True),
    _captions(
        "part-alone", GOOD[5:15], postgen=["bleu", "cider_d", "cider"], subset=True, idf="subset"
    ),
    _captions("one-image", GOOD[:1], postgen=["bleu", "cider_d"], subset=True),
    _captions("first-version", GOOD, postgen=["bleu_1"], dataset="versions@v1/test"),
    _evaluate(
        "of-training",
        {
            "captions": [{"image": f"seen{at}.jpg", "caption": "a cat"} for at in range(8)],
            "dataset": "sayings/train",
        },
    ),
    _evaluate(
        "waited-for",
        {**_OF_SAYINGS, "captions": FAIR, "postgen": ["meteor"]},
        Prefer="wait=60",
    ),
    *(
        _evaluate(
            name,
            {**_OF_SAYINGS, "captions": captions, "postgen": ["bleu"]},
            Idempotency_Key="a-golden-key",
        )
        for name, captions in (("with-key", POOR), ("replay", POOR), ("other-replay", GOOD))
    ),
]
_OF_MODELS = [
    *(
        _model(name, name, postgen=["bleu", "rouge_l", "cider_d"], labels={"run": str(at % 2)})
        for at, name in enumerate(CHECKPOINTS)
    ),
    # People who begin as the model does: every score of its own choices is finite.
    _model("agreeing", AGREEING, dataset="agreed/test", postgen=[]),
    # No other evaluation has its forecast from this one, which does not show what they need: so
    # the same request, sent again, has the same history.
    _model("forecast", "last", pregen=["perplexity"], postgen=["cider_d", "rouge_l"]),
    _model(
        "pictured",
        "init-gru",
        dataset=_PICTURES,
        postgen=["bleu", "rouge_l", "cider_d"],
        labels={"run": "0"},
    ),
    _model(
        "usual",
        "merge-lstm",
        dataset=_PICTURES,
        tokenizer="ptb",
        decoding={},
        postgen=["meteor", "bleu", "cider"],
    ),
    _model(
        "beam",
        "par-gru",
        dataset=_PICTURES,
        pregen=["mean_join_normcount_filter0", "geomean_join_pplx_none", "sum_sum_count_miss0"],
        postgen=["variety", "wmd", "bertscore", "cider_d"],
        decoding={"beam": 4, "min_words": 0, "max_words": 6, "unk": True},
    ),
    _model("postgen-alone", "init-lstm", pregen=[], postgen=["rouge_l"], decoding={"beam": 2}),
    _model(
        "pregen-alone",
        "par-lstm",
        {"Prefer": "wait=60"},
        dataset="many/test",
        postgen=[],
        gates=["perplexity < 1e9", "median_max_prob_none > 2"],
        labels={"branch": "main"},
    ),
    _model("in-parts", "par-lstm", dataset="many/test", postgen=["cider_d", "bleu"]),
    _evaluate(
        "of-columns",
        {
            "columns": "<few.columns.digest>",
            "captions": [
                {"image": image, "caption": said[0]} for image, said in sorted(FEW.items())
            ],
            "dataset": "few/test",
            "tokenizer": "none",
            "postgen": ["cider_d"],
            "gates": ["perplexity < baseline"],
            "baseline": "<init-gru.id>",
            "labels": {"run": "0"},
        },
    ),
]
_GATES = [
    _captions(
        "gates-by-label",
        GOOD,
        postgen=[],
        gates=["cider_d >= baseline - 0.01", "bleu_4 > 0.99", "bleu_1 >= 0.5 * baseline + 0.1"],
        baseline="branch=main",
    ),
    _captions(
        "gates-by-id",
        POOR,
        postgen=["bleu"],
        gates=["no_significant_drop(bleu_4, cider_d)", "cider_d >= baseline"],
        baseline="<good.id>",
    ),
    _captions("gates-by-best", FAIR, postgen=[], gates=["cider_d >= baseline"], baseline="best"),
    _captions(
        "not-comparable", GOOD, tokenizer="ptb", gates=["cider_d > baseline"], baseline="<good.id>"
    ),
    _captions(
        "no-baseline", GOOD, postgen=[], gates=["bleu_1 > baseline"], baseline="branch=nobody"
    ),
    _captions("undecided", GOOD, postgen=["bleu_1"], gates=["nneval > 0.1"]),
    _model(
        "gates-of-models",
        "merge-lstm",
        dataset=_PICTURES,
        postgen=["cider_d"],
        gates=["no_significant_drop(perplexity, cider_d)", "perplexity <= baseline"],
        baseline="<pictured.id>",
        labels={"run": "1"},
    ),
]
_STUDIES = [
    _post("ask for study", "/v1/studies", {"dataset": "few/test"}),
    _post("ask for study of strata", "/v1/studies", {"dataset": "few/test", "idf": "stratum"}),
    _get("study", "/v1/datasets/few/correlations", settles=True),
    _get("study-of-strata", "/v1/datasets/few/correlations?idf=stratum", settles=True),
]


def _compare(name: str, a: str, b: str, *metrics: str, **headers: str) -> Step:
    body: dict[str, Any] = {"a": a, "b": b}
    if metrics:
        body["metrics"] = [*metrics]
    return _post(name, "/v1/comparisons", body, **headers)


_OF_BOTH = ("perplexity", "mean_max_normcount_prefix0", "cider_d")
_COMPARISONS = [
    _compare("compared", "<good.id>", "<poor.id>"),
    _compare("compared-by-some", "<fair.id>", "<poor.id>", "bleu", "wmd", Prefer="wait=60"),
    _compare("compared-models", "<pictured.id>", "<gates-of-models.id>", *_OF_BOTH),
]
_PROBES = [
    _post("probed", "/v1/probes", {"dataset": "sayings/test", "evaluation": "<everything.id>"}),
    _post(
        "probed-by-some",
        "/v1/probes",
        {
            "dataset": "sayings/test",
            "probes": ["human", "frequent", "swap", "single"],
            "metrics": ["bleu_1", "cider", "wmd", "bertscore", "bleu_1"],
            "tokenizer": "regex",
            "captions": FAIR,
            "options": {"frequent": 3, "objective": "rouge_l"},
        },
    ),
    _captions("untrusted", FAIR, postgen=["bleu_1"], gates=["bleu_1 > 0"]),
    _captions("trusted", FAIR, postgen=["bleu_1"], gates=["bleu_1 > 0"], trust=["bleu"]),
]


def _training(name: str, captioners: list[dict[str, Any]], **more: Any) -> Step:
    asked = {**_OF_SAYINGS, "captioners": captioners, "features": ["bleu_1", "cider_d"]}
    return _post(name, "/v1/learned", {**asked, "epochs": 30, **more})


_CAPTIONERS = [
    {"name": "good", "evaluation": "<good.id>", "trained_on": "sayings/train"},
    {"name": "fair", "captions": FAIR},
    {"name": "poor", "evaluation": "<poor.id>"},
]
# The captioners above say what people say, less a word: a metric that tells them from people has
# its scores the wrong way round, and is refused.
_WORSE = [
    _CAPTIONERS[0],
    *({"name": f"confused-{seed}", "captions": _confused(seed)} for seed in range(1, 6)),
]
_TRAININGS = [
    _training("trained", _WORSE, stopping=RATED),
    _training(
        "trained-otherwise",
        _WORSE,
        features=["bleu_4", "cider_d", "wmd"],
        learning_rate=0.25,
        seed=3,
    ),
    _training("untrainable", [{**_CAPTIONERS[0], "trained_on": "sayings/test"}, *_CAPTIONERS[1:]]),
    _captions(
        "by-models",
        FAIR,
        postgen=[
            *(f"<{name}.metric>" for name in ("trained", "trained-otherwise")),
            "bleu_1",
        ],
    ),
    _captions(
        "gates-by-model",
        POOR,
        postgen=[],
        gates=["<trained.metric> >= baseline", "no_significant_drop(<trained.metric>)"],
        baseline="<by-models.id>",
    ),
]
_CANCELED = [
    _model(
        "canceled",
        "merge-gru",
        pregen=[],
        postgen=["rouge_l"],
        decoding=_LONG,
    ),
    _post("cancel-what-ended", "/v1/evaluations/<good.id>/cancel"),
    _post("cancel-comparison", "/v1/comparisons/<compared.id>/cancel"),
    _post("cancel-probes", "/v1/probes/<probed.id>/cancel"),
    _post("cancel-training", "/v1/learned/<trained.id>/cancel"),
    _post("cancel-nothing", "/v1/evaluations/ev_nobody/cancel"),
]
LEFT = "canceled"  # the run that is canceled as soon as it has begun


def _refused(name: str, **change: Any) -> Step:
    return _captions(name, **{"captions": GOOD[:2], "postgen": ["bleu"], **change})


_JSON = {"Content-Type": "application/json"}
_REFUSED = [
    _refused("unknown-image", captions=[*GOOD[:-1], {"image": "x.jpg", "caption": "a"}]),
    _refused("image-twice", captions=[*GOOD, GOOD[0]]),
    _refused("images-missing", captions=GOOD[1:]),
    _refused("unknown-metric", postgen=["bleu", "cyder_d"]),
    _refused("pregen-of-captions", pregen=["perplexity"]),
    _refused("pregen-as-postgen", postgen=["perplexity"]),
    _refused("unknown-field", beams=3),
    _refused("wrong-types", subset="yes", decoding={"beam": 0}, labels={"a": 1}),
    _refused("unreadable-gate", gates=["cider_d"]),
    _refused("gate-of-nothing", gates=["cyder_d > 0"]),
    _refused("gate-without-baseline", gates=["cider_d > baseline"]),
    _refused("gate-of-model-for-captions", gates=["perplexity < 9"]),
    _refused("unknown-baseline", gates=["cider_d > baseline"], baseline="ev_nobody"),
    _refused("no-gate-to-wait-for", until="verdict"),
    _refused("unknown-dataset", dataset="nowhere/test"),
    _refused("unknown-split", dataset="sayings/none"),
    _refused("unknown-version", dataset="sayings@v9/test"),
    _refused("badly-named", dataset="sayings"),
    _refused("unknown-model", postgen=["nneval@000000000000"]),
    _refused("both", checkpoint="<init-gru.model.digest>"),
    _evaluate("neither", {"dataset": "sayings/test"}),
    _model("unknown-checkpoint", "nothing"),
    _model("without-features", "init-gru", dataset="sayings/test"),
    _model("other-features", "narrow"),
    _model("words-out-of-order", "init-gru", decoding={"min_words": 9, "max_words": 3}),
    Step("malformed", "POST", "/v1/evaluations", text='{"dataset": ', headers=_JSON),
    Step("twice", "POST", "/v1/evaluations", text='{"a": 1, "a": 2}', headers=_JSON),
    Step("no-json", "POST", "/v1/evaluations", text="a", headers={"Content-Type": "text/plain"}),
    _evaluate("bad-key", {**_OF_SAYINGS, "captions": GOOD[:2]}, Idempotency_Key='"a'),
    _evaluate("bad-wait", {**_OF_SAYINGS, "captions": GOOD[:2]}, Prefer="wait=long"),
    _compare("compare-nothing", "<good.id>", "ev_nobody"),
    _compare("compare-parts", "<good.id>", "<part.id>"),
    _compare("compare-others", "<good.id>", "<pictured.id>"),
    _compare("compare-tokens", "<good.id>", "<everything.id>", "bleu_1"),
    _compare("compare-unlike", "<part.id>", "<part-alone.id>", "cider_d"),
    _compare("compare-prob", "<init-gru.id>", "<pre-gru.id>", "max_max_prob_none"),
    _post("probe-nothing", "/v1/probes", {"dataset": "nowhere/test"}),
    _post("probe-oddly", "/v1/probes", {"dataset": "sayings/test", "probes": ["humans"]}),
    _post("probe-variety", "/v1/probes", {"dataset": "sayings/test", "metrics": ["words_used"]}),
    _post(
        "probe-elsewhere", "/v1/probes", {"dataset": "sayings/test", "evaluation": "<init-gru.id>"}
    ),
    _training("train-on-two", _CAPTIONERS[:2]),
    _training("train-by-rouge", _CAPTIONERS, features=["rouge_l"]),
    _training("train-on-others", [*_CAPTIONERS, {"name": "far", "evaluation": "<init-gru.id>"}]),
]

STEPS: list[Step] = [
    *_UPLOADS,
    *_OF_CAPTIONS,
    *_OF_MODELS,
    *_STUDIES,
    *_GATES,
    *_COMPARISONS,
    *_PROBES,
    *_TRAININGS,
    *_CANCELED,
    *_REFUSED,
]


# What is read at the end.

_PLACES = {
    "/v1/evaluations": "ev",
    "/v1/comparisons": "cp",
    "/v1/probes": "pb",
    "/v1/learned": "ln",
}
RUNS: list[tuple[str, str]] = [
    (step.name, step.path)
    for step in (*_OF_CAPTIONS, *_OF_MODELS, *_GATES, *_COMPARISONS, *_PROBES, *_TRAININGS)
    if step.name != "other-replay"
] + [(LEFT, "/v1/evaluations")]
_WITH_PREGEN = [
    *CHECKPOINTS,
    "of-columns",
    "forecast",
    "agreeing",
    "pictured",
    "beam",
    "usual",
    "in-parts",
]
_WITH_CAPTIONS = [
    *("everything", "good", "fair", "part", "unavailable", "by-models", "pictured", "usual"),
    *("beam", "postgen-alone"),
]


def _of_run(name: str, place: str) -> list[Step]:
    path = f"{place}/<{name}.id>"
    return [
        _get(f"run {name}", path),
        _get(f"run {name} unchanged", path, If_None_Match=f"<{name}.etag>"),
    ]


def _of_evaluation(name: str) -> list[Step]:
    path = f"/v1/evaluations/<{name}.id>"
    return [
        _get(f"captions {name}", f"{path}/captions"),
        _get(f"sheet {name}", f"{path}/captions", Accept="text/csv"),
        _get(f"coco {name}", f"{path}/captions?format=coco"),
        _get(f"columns {name}", f"{path}/captions?format=columns"),
    ]


def _of_events(name: str) -> list[Step]:
    path = f"/v1/evaluations/<{name}.id>/events"
    return [
        _get(f"events {name}", path),
        _get(f"events {name} resumed", path, Last_Event_ID=f"<{name}.before>"),
        _get(f"events {name} over", path, Last_Event_ID=f"<{name}.last>"),
    ]


def _of_board(name: str, query: str) -> list[Step]:
    found = []
    for board in ("leaderboard", "history"):
        path = f"/v1/datasets/{name}/{board}?{query}"
        found.append(_get(f"{board} {name} {query}", path))
        found.append(_get(f"{board} {name} {query} sheet", path, Accept="text/csv"))
    return found


def _paged(name: str, path: str, pages: int) -> list[Step]:
    """The first pages of a list."""
    more = "&" if "?" in path else "?"
    found = [_get(f"{name} page 1", path)]
    for page in range(2, pages + 1):
        place = f"{path}{more}cursor=<{name} page {page - 1}.next>"
        found.append(_get(f"{name} page {page}", place))
    return found


READINGS: list[Step] = [
    *(step for name, place in RUNS for step in _of_run(name, place)),
    _get("run stale", "/v1/evaluations/<good.id>", If_None_Match='"another.1"'),
    _get("run waited for", "/v1/evaluations/<good.id>", Prefer="wait=1"),
    *(_get(f"pregen {name}", f"/v1/evaluations/<{name}.id>/pregen") for name in _WITH_PREGEN),
    _get("pregen good", "/v1/evaluations/<good.id>/pregen"),
    *(step for name in _WITH_CAPTIONS for step in _of_evaluation(name)),
    *_paged("captions in pages", "/v1/evaluations/<good.id>/captions?limit=15", 3),
    _get("captions of pregen", "/v1/evaluations/<pregen-alone.id>/captions"),
    *(
        _get(f"tokens {name} {image}", f"/v1/evaluations/<{name}.id>/tokens/{image}")
        for name in ("pictured", "merge-lstm")
        for image in ("0.jpg", "904")
    ),
    _get("tokens nowhere", "/v1/evaluations/<pictured.id>/tokens/x.jpg"),
    _get("tokens of captions", "/v1/evaluations/<good.id>/tokens/0.jpg"),
    *(step for name in ("good", "pictured", "unavailable") for step in _of_events(name)),
    _get("model", "/v1/learned/<trained.id>/model"),
    _get("model of none", "/v1/learned/<untrainable.id>/model"),
    *_paged("evaluations", "/v1/evaluations?limit=15", 3),
    _get("evaluations of main", "/v1/evaluations?label.branch=main"),
    _get("evaluations of main and seed", "/v1/evaluations?label.branch=main&label.seed=1"),
    _get("evaluations on pictures", "/v1/evaluations?dataset=pictures&limit=200"),
    _get("evaluations on a version", "/v1/evaluations?dataset=versions@v1"),
    _get("evaluations canceled", "/v1/evaluations?status=canceled"),
    _get("evaluations failed", "/v1/evaluations?status=failed"),
    *_of_board("few", "metric=cider_d"),
    *_of_board("few", "metric=perplexity"),
    *_of_board("few", "metric=bleu_1&label.run=1"),
    *_of_board("pictures", "metric=cider_d"),
    *_of_board("sayings", "split=test&metric=bleu_1"),
    *_of_board("sayings", "split=test"),
    *_paged("leaderboard", "/v1/datasets/few/leaderboard?metric=rouge_l&limit=4", 2),
    *_paged("history", "/v1/datasets/few/history?metric=rouge_l&limit=4", 2),
    _get("leaderboard of lengths", "/v1/datasets/sayings/leaderboard?metric=caption_length"),
    _get("history of nothing", "/v1/datasets/pictures/history?metric=spice"),
    _get("history elsewhere", "/v1/datasets/nowhere/history"),
    _get("correlations", "/v1/datasets/few/correlations"),
    _get("correlations of strata", "/v1/datasets/few/correlations?idf=stratum&limit=2"),
    _get("correlations sheet", "/v1/datasets/few/correlations", Accept="text/csv"),
    _get("correlations of none", "/v1/datasets/sayings/correlations?split=test"),
    _get("correlations of many", "/v1/datasets/many/correlations"),
    _get("correlations refused", "/v1/datasets/few/correlations?idf=subset"),
    _get("datasets", "/v1/datasets"),
    _get("dataset", "/v1/datasets/versions"),
    _get("dataset by version", "/v1/datasets/versions@v1"),
    _get("dataset captions", "/v1/datasets/few", Accept="application/x-ndjson"),
    _get("dataset unknown", "/v1/datasets/nowhere"),
    Step("has", "HEAD", "/v1/checkpoints/<init-gru.model.digest>"),
    Step("has no digest", "HEAD", "/v1/checkpoints/sha256:0"),
    *(_get(f"checkpoint {name}", f"/v1/checkpoints/<{name}.model.digest>") for name in CHECKPOINTS),
    _get("columns", "/v1/columns/<few.columns.digest>"),
    _get("checkpoint unknown", "/v1/checkpoints/<nothing.model.digest>"),
    *(
        _get(f"list of {place}", f"{place}?limit=200")
        for place in _PLACES
        if "evaluations" not in place
    ),
    _get("list of studies", "/v1/studies"),
    _get("labels", "/v1/labels?dataset=sayings"),
    _get("pairs", "/v1/comparisons/<compared.id>/images?metric=cider_d&limit=5"),
    _get("images", "/v1/datasets/sayings/images/3.jpg/references"),
    _get("me", "/v1/me"),
    _get("limits", "/v1/limits"),
    _get("metrics", "/v1/metrics"),
    *(_get(f"nobody of {place}", f"{place}/{begin}_nobody") for place, begin in _PLACES.items()),
    _get("comparison as evaluation", "/v1/evaluations/<compared.id>"),
    _get("evaluation as comparison", "/v1/comparisons/<good.id>"),
    _get("limit of none", "/v1/evaluations?limit=0"),
    _get("foreign cursor", "/v1/evaluations?cursor=<leaderboard page 1.next>"),
    _get("no route", "/v1/nothing"),
    Step("no method", "PUT", "/v1/metrics"),
    _get("alive", "/livez"),
    _get("ready", "/readyz"),
    _get("telemetry", "/metrics"),
]
