"""A home of version 0.1.0 and the whole story of how it came about: what was answered then is
answered now, what was computed then is not computed again, and told anew it is the same story.

README.md says how the files were made.
"""

import contextlib
import json
import re
from fnmatch import fnmatchcase

import httpx
import pytest

import outside
from fleet import Fleet
from golden import comparing, home, story, telling
from service.contract.metrics import catalogue

# What may differ from the answers then: exchange (`*` any part of a name) -> JSON pointers into
# {"status", "headers", "body"}, `*` any one member.
MAY_DIFFER: dict[str, tuple[str, ...]] = {
    "tokens *": tuple(f"/body/captions/*/tokens/*/{name}" for name in ("tops", "entropy")),
    "ready": ("/body/workers", "/body/findings"),
    "no-checkpoint": ("/body/detail",),  # a text is told as one
    "*": tuple(
        f"/body/{place}{name}"
        for place in ("", "items/*/")
        for name in (
            *("gates/*/no_baseline", "gates/*/baseline_failed", "columns", "note"),
            "forecast/none_because",  # words of it
        )
    ),
    **dict.fromkeys(  # metrics beside the one that is asked for
        ("leaderboard*", "history*"),
        tuple(
            f"/body/{name}"
            for name in ("beside", "items/*/scores", "none_because", "items/*/ranked_by")
        ),
    ),
    **dict.fromkeys(  # a metric that is unavailable is a warning
        ("run unavailable", "run undecided"), ("/body/warnings",)
    ),
    "metrics": (
        "/body/items/*/reason",  # a service of a home of its own is told of
        f"/body/items/{[*catalogue.PREGEN].index('geomean_join_pplx_none')}/definition",  # formula
    ),
    **dict.fromkeys(  # a part of a split is a warning
        ("run part", "run part-alone", "run one-image"), ("/body/warnings",)
    ),
    "evaluations page *": ("/body/items/*/warnings",),
    "captions *": ("/body/matching", "/body/distribution"),  # of sorted and searched ones
    "captions in pages *": ("/body/next",),  # opaque; those of then are still taken
    "dataset*": tuple(
        f"/body/{place}{name}"
        for place in ("", "items/*/")
        for name in (
            *("content", "captions", "splits/*/pictures", "pictures_shown"),
            *("features/inputs", "features/places"),
        )
    ),
    "malformed": ("/body/detail",),  # in plain words
    # A training that has made no model is no missing training.
    "model of none": (
        "/status",
        *(f"/body/{each}" for each in ("type", "title", "status", "code", "detail")),
    ),
    "image-twice": ("/body/detail", "/body/errors/*/detail"),  # items are counted from 1
    "images-missing": ("/body/detail", "/body/errors/*/detail"),  # one is no plural
    **dict.fromkeys(  # what was expected and found is told in other words, or was not told
        (
            *("unknown-field", "unknown-metric", "unknown-version", "both", "neither"),
            *("unknown-dataset", "probe-nothing", "correlations refused", "no route", "no method"),
            *("captions of pregen", "tokens of captions", "dataset unknown"),
            *("limit of none", "wrong-types", "probe-oddly", "train-on-two", "train-by-rouge"),
        ),
        ("/body/detail", "/body/errors"),
    ),
    **dict.fromkeys(  # a study is of models, since columns may be brought
        ("correlations of none", "correlations of many"), ("/body/none_because",)
    ),
    **dict.fromkeys(  # a 404 points at the field that names what is not there
        ("unknown-split", "unknown-checkpoint", "compare-nothing"), ("/body/errors",)
    ),
    **dict.fromkeys(  # what is not of the same captions is told by its version
        ("compare-others", "probe-elsewhere", "train-on-others"),
        ("/body/detail", "/body/errors/*/detail"),
    ),
}

# And what is another story where it is told anew: estimates are computed for gates alone, and a
# metric's health counts from the usual probes alone, which the story does not ask for.
_BY_A_TEST = ("interval", "minimum_detectable")
_UNGUARDED = ("/health", "/gates/*/verdict", "/gates/*/detail", "/verdict")
_DETECTABLE = "/gates/*/scores/*/minimum_detectable"
_OF_SHIPPED = "scores/nneval"  # by a model that is no longer the one in the package
_TRAINED = ("trained", "trained-otherwise", "boosted")  # on worse captions: `story` says why
_BY_TRAINED = "scores/nneval@*"
TOLD_OTHERWISE: dict[str, tuple[str, ...]] = {
    "run in-parts": ("/body/works", "/body/estimate"),
    **{  # intervals of comparisons are by their test, and so are ranks
        f"run {name}": tuple(f"/body/scores/*/{field}" for field in _BY_A_TEST)
        for name in ("compared", "compared-by-some", "compared-models")
    },
    **{
        f"run {name}": ("/body/gates/*/detail", f"/body{_DETECTABLE}")
        for name in ("gates-by-id", "gates-of-models")
    },
    "evaluations on pictures": ("/body/items/*/gates/*/detail", f"/body/items/*{_DETECTABLE}"),
    **{
        f"run {name}": tuple(f"/body{at}" for at in _UNGUARDED) for name in ("untrusted", "trusted")
    },
    "run everything": (f"/body/{_OF_SHIPPED}",),
    "captions everything": (f"/body/items/*/{_OF_SHIPPED}",),
    "sheet everything": ("/body",),
    **dict.fromkeys(
        ("evaluations page 3", "evaluations of main"), (f"/body/items/*/{_OF_SHIPPED}",)
    ),
    **{
        f"run {name}": (
            "/body/warnings",
            *(
                f"/body/model/{at}"
                for at in (
                    *("features", "training", "recipe/epochs"),
                    *("epochs", "best_epoch", "kendall_c"),
                )
            ),
        )
        for name in _TRAINED
    },
    **dict.fromkeys(("model", "model of trees"), ("/body/bytes", "/body/digest")),
    "correlations sheet": ("/body/*/6",),  # the p of ranks is exact
    **{
        f"run {name}": (
            *(f"/body{at}" for at in _UNGUARDED),
            *(f"/body/{_BY_TRAINED}/{field}" for field in ("value", "interval", "signature")),
            "/body/gates/*/scores",
        )
        for name in ("by-models", "gates-by-model")
    },
    "captions by-models": (f"/body/items/*/{_BY_TRAINED}",),
    "sheet by-models": ("/body",),
    "evaluations page 1": tuple(
        f"/body/items/*{at}"
        for at in (*_UNGUARDED, "/works", "/estimate", f"/{_BY_TRAINED}", "/gates/*/scores")
    ),
}

COMPUTED_OTHERWISE = {
    "comparison",
    "learned",
    "study",
}  # kinds that have another version since then
NO_LONGER = {"look"}  # the works of estimates
SHIPPED = {"everything": "nneval"}  # by a model that is no longer the one in the package
SINCE_THEN = {
    "corpus_perplexity",
    "refscore",
    "chair_i",
    "chair_s",
    "accord",
    "accord_large",
}  # metrics that the catalogue did not list

ANSWERS = {exchange["name"]: exchange for exchange in home.read("answers")["answers"]}
POSTS = {exchange["name"]: exchange for exchange in home.read("posts")["posts"]}
MAY_DIFFER |= {
    name: MAY_DIFFER["dataset*"] for name, post in POSTS.items() if "/datasets/" in post["path"]
}
_OF_CHECKPOINTS = (  # told since then
    *(f"/body/config/{name}_size" for name in ("embedding", "image", "attention", "inner")),
    *("/body/config/layers", "/body/config/heads"),
    *(f"/body/{name}" for name in ("format", "state", "problem", "inputs", "units", "plugin")),
    "/body/cached/*/features",
)
MAY_DIFFER |= {
    name: (*MAY_DIFFER.get(name, ()), *_OF_CHECKPOINTS)
    for name, exchange in {**ANSWERS, **POSTS}.items()
    if "/checkpoints/" in exchange["path"]
}
TOLD_OTHERWISE |= {
    name: ("/body",) if name.endswith("sheet") else ("/body/items/*/rank", "/body/items/*/tied")
    for name in ANSWERS
    if name.startswith("leaderboard ") and name != "leaderboard of lengths"
}
# What gates' details tell of a baseline beside its evaluation, since then.
_OF_BASELINES = re.compile(r"(?<=>) of [^ ()]+@v[0-9]+/[^()]*(?=\))")
# Attempts that end because their run was canceled are counted since then.
_GIVEN_UP = re.compile(r'prescore_attempts_total\{outcome=\\"given up\\"\} (\\n)?')
_NEW_WARNINGS = {"subset", "no_spread"}  # of what is submitted since then
_BROUGHT = ("scores", "probes", "model", "metric", "images", "warnings")


def _end(name):
    """What a run said when it had ended; None where the exchange began none."""
    exchange = ANSWERS.get(f"run {name}")
    return exchange and exchange["answer"]["body"]


def _without_new_warnings(told):
    if isinstance(told, list):
        kept = [one for one in told if not (isinstance(one, dict) and _is_new(one))]
        return [_without_new_warnings(one) for one in kept]
    if isinstance(told, dict):
        return {name: _without_new_warnings(value) for name, value in told.items()}
    return told


def _is_new(one):
    return one.keys() == {"code", "image", "detail"} and one["code"] in _NEW_WARNINGS


def _is_complete(name):
    end = _end(name)
    works = [] if end is None else end["works"]
    kinds = {work["kind"] for work in works}
    return {work["status"] for work in works} == {"done"} and not kinds & COMPUTED_OTHERWISE


COMPLETE = [name for name in POSTS if _is_complete(name)]
AT_ONCE = [
    name
    for name, post in POSTS.items()
    if "body" in post["answer"] and post["method"] in ("POST", "PUT")
]


def _agree(name, found, expected, *, exact=True, may_differ=MAY_DIFFER):
    may = [at for pattern, all_ in may_differ.items() if fnmatchcase(name, pattern) for at in all_]
    if name == "metrics":
        found = _without_new(found)
    left = (comparing.without(each, may) for each in (expected, found))
    return comparing.differences(*left, exact=exact)


def _without_new(listed):
    items = [item for item in listed["body"]["items"] if item["name"] not in SINCE_THEN]
    return {**listed, "body": {**listed["body"], "items": items}}


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def client(request, serve_here, tmp_path_factory):
    """Of a service on the restored home, which it migrates. In this process, and held: what was
    computed is not computed again, and what was not is not computed here.
    """
    folder = tmp_path_factory.mktemp("golden") / "home"
    with contextlib.ExitStack() as stack:
        url = None
        if request.param == "postgresql":
            url = stack.enter_context(outside.or_skip(outside.postgres_database()))
        home.restore(folder, url)
        service = stack.enter_context(serve_here(folder, url=url))
        service.hold()
        yield stack.enter_context(telling.client_of(service))


@pytest.fixture(scope="module")
def answers(client):
    """All of them, before anything is added to the record."""
    return {name: _asked(client, exchange) for name, exchange in ANSWERS.items()}


@pytest.fixture(scope="module")
def answers_again(client, answers):
    """To what was posted and put, sent once more; that whose history others change goes first."""
    names = sorted([*COMPLETE, *AT_ONCE], key=lambda name: name != story.FIRST_AGAIN)
    return {name: _asked(client, POSTS[name]) for name in names}


def _asked(client, exchange):
    request = telling.request_of(exchange)
    if "file" in exchange:
        request["content"] = _content(exchange)
    return telling.answer_of(client.request(**request))


def _content(post):
    return home.blobs()[post["digest"]] if "digest" in post else home.unpack(post["content"])


@pytest.mark.long
@pytest.mark.parametrize("name", ANSWERS)
def test_a_restored_home_answers_as_it_did(answers, name):
    assert _agree(name, answers[name], ANSWERS[name]["answer"]) == []


@pytest.mark.long
@pytest.mark.parametrize("name", COMPLETE)
def test_what_was_computed_is_not_computed_again_and_scores_the_same(answers_again, name):
    found, end = answers_again[name]["body"], _end(name)
    assert answers_again[name]["status"] in (httpx.codes.CREATED, httpx.codes.ACCEPTED)
    anew = SHIPPED.get(name)
    works = [work for work in found["works"] if work["name"] != anew]
    assert {(work["status"], work["cached"]) for work in works} == {("done", True)}
    if anew is None:
        assert found["status"] == "succeeded"
    else:
        end = {
            **end,
            "scores": {each: end["scores"][each] for each in end["scores"] if each != anew},
        }
    brought = [member for member in _BROUGHT if member in end]
    assert brought
    found = _without_new_warnings(found)
    for member in brought:
        assert comparing.differences(end[member], found[member]) == [], member


@pytest.mark.long
@pytest.mark.parametrize("name", AT_ONCE)
def test_what_was_refused_is_refused_again_and_what_was_taken_in_is_there(answers_again, name):
    """Of a checkpoint, by now, some scores are known."""
    found, expected = answers_again[name], POSTS[name]["answer"]
    if expected["status"] == httpx.codes.CREATED:
        expected = {**expected, "status": int(httpx.codes.OK)}
    found, expected = (comparing.without(each, ["/body/cached"]) for each in (found, expected))
    assert _agree(name, found, expected) == []


@pytest.fixture(scope="module")
def anew(spice_jars, tmp_path_factory):
    """The whole story told to an empty home: what was posted, what was read, all works' keys."""
    folder = tmp_path_factory.mktemp("anew") / "home"
    home.restore_assets(folder)
    files = {post["file"]: _content(post) for post in POSTS.values() if "file" in post}
    first = Fleet(folder, PRESCORE_ASSETS=str(spice_jars[0].parent))
    posts, read = telling.tell(first, Fleet(folder, PRESCORE_ASSETS=""), files)
    rows = home.rows_at(folder)
    return [*posts, *read], home.keys_of(rows), _results(rows)


def _is_same_machine():
    return home.read("answers")["made_on"] == home.kind_of_machine()


@pytest.fixture(scope="module")
def both(anew):
    """The answers then and now."""
    exact = _is_same_machine()
    then = [*POSTS.values(), *ANSWERS.values()]
    now = [exchange for exchange in anew[0] if exchange["name"] in {**POSTS, **ANSWERS}]
    told = json.dumps(comparing.normal(_without_new_warnings(now), exact=exact))
    return comparing.normal(then, exact=exact), json.loads(
        _GIVEN_UP.sub("", _OF_BASELINES.sub("", told))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [*POSTS, *ANSWERS])
def test_told_anew_it_is_the_same_story(both, name):
    then, now = both
    exact = _is_same_machine() and not comparing.is_of_study({**POSTS, **ANSWERS}[name])
    may = {**MAY_DIFFER, name: (*MAY_DIFFER.get(name, ()), *TOLD_OTHERWISE.get(name, ()))}
    assert _agree(name, now[name], then[name], exact=exact, may_differ=may) == []


@pytest.mark.slow
def test_told_anew_all_works_have_the_keys_that_they_had(anew):
    """On a machine of another kind, those of what is made of scores are others."""
    then, now = home.read("keys"), anew[1]
    then = {kind: then[kind] for kind in then if kind not in NO_LONGER}
    assert {kind: len(keys) for kind, keys in now.items()} == {
        kind: len(keys) for kind, keys in then.items()
    }
    if _is_same_machine():
        named_by_runs = {"study", "nneval"} | COMPUTED_OTHERWISE  # and by models
        assert {kind: now[kind] for kind in now if kind not in named_by_runs} == {
            kind: then[kind] for kind in then if kind not in named_by_runs
        }


@pytest.mark.slow
def test_told_anew_all_works_write_the_same_bytes(anew):
    """On a machine of the same kind. What is made of ids of runs, which are drawn, differs."""
    if not _is_same_machine():
        pytest.skip(f"the last bits of scores are those of {home.read('answers')['made_on']}")
    then, now = _results(home.read("record")), anew[2]
    common = then.keys() & now.keys()
    assert len(common) > 0.8 * len(then)
    assert {key: now[key] for key in common} == {key: then[key] for key in common}


def _results(record):
    """By key of the work, the digest of what it wrote."""
    columns, rows = record["tables"]["works"].values()
    works = [dict(zip(columns, row, strict=True)) for row in rows]
    return {work["key"]: work["result"] for work in works if work["result"] is not None}
