"""A home of the last release, and the story of requests that filled it: what was answered then is
answered now, what was computed then is not computed again, and told anew it is the same story.

README.md says how the files were made.
"""

import csv
import io
import json
from contextlib import ExitStack
from fnmatch import fnmatchcase

import httpx
import pytest

from golden import comparing, home, telling
from helpers import outside
from helpers.fleet import Fleet

# Differences since the release that are meant: name of an exchange (`*`: any part of it) -> JSON
# pointers into {"status", "headers", "body"} (`*`: any one member).
MAY_DIFFER: dict[str, tuple[str, ...]] = {
    "ready": ("/body/workers", "/body/findings"),  # the restored home has none
    "metrics": ("/body/items/*/reason",),  # names the folder of the home
    # A checkpoint may be an adapter of a base model, and the prompt is a field, of requests too;
    # gates of a difference have its interval, and gates on a baseline a margin; forecasts tell how
    # far they are beyond the range; evaluations have falls and the caption of most images.
    "*": (
        *("/body/base", "/body/prompt", "/body/items/*/prompt"),
        *("/body/falls", "/body/items/*/falls", "/body/collapsed", "/body/items/*/collapsed"),
        *("/body/forecast/none_because", "/body/items/*/forecast/none_because"),  # plainer now
        *("/body/forecast/metrics/*/none_because", "/body/items/*/forecast/metrics/*/none_because"),
        *("/body/probes/*/*/reason", "/body/items/*/probes/*/*/reason"),
        *(
            f"{at}/gates/*/scores/*/{field}"
            for at in ("/body", "/body/items/*")
            for field in ("difference_interval", "margin")
        ),
        *(f"{at}/forecast/metrics/*/beyond" for at in ("/body", "/body/items/*")),
        *(
            f"{at}/tasks/*/{field}"  # tasks tell when they are tried again, and how long they take
            for at in ("/body", "/body/items/*")
            for field in ("attempts_allowed", "retry_at", "seconds_left", "started_at")
        ),
        *("/body/splits/*/words", "/body/items/*/splits/*/words"),  # not counted then
    ),
    # Captions are held against the words of their references.
    "captions *": (
        "/body/wording",
        *(f"/body/items/*/{field}" for field in ("nearest", "invented", "missed", "matched")),
    ),
    # Boards have tests against the first, the best by each metric, scores to hold them against, and
    # tell which evaluations share a row, and which have collapsed.
    "leaderboard *": (
        *(f"/body/{field}" for field in ("detectable", "firsts", "references", "constant_caption")),
        *(f"/body/items/*/{field}" for field in ("tied_with_first", "against_first")),
        *(f"/body/items/*/{field}" for field in ("equal", "equal_ones", "is_collapsed")),
    ),
    "correlations *": ("/body/none_because",),
    "limits": ("/body/open_seconds", "/body/in_progress", "/body/conversions"),  # newer
    # Images of comparisons have the words exchanged.
    "run compared*": ("/body/images/*/exchanges",),
    "compared*": ("/body/images/*/exchanges",),
    "pairs": ("/body/items/*/exchanges",),
    "unknown-field": ("/body/detail", "/body/errors"),
    # NNEval has one learner, the network: its model card no longer names it.
    "run trained*": ("/body/model/learner",),
    "list of /v1/learned": ("/body/items/*/model/learner",),
}
COMPUTED_ANEW = {"forecast"}  # beyond the range they have a value now
KINDS_THAT_NAME_RUNS = {"study", "learned", "nneval", "comparison"}  # whose ids are drawn
_BROUGHT = ("scores", "probes", "model", "metric", "images", "warnings")

ANSWERS = {exchange["name"]: exchange for exchange in home.exchanges()["answers"]}
POSTS = {exchange["name"]: exchange for exchange in home.exchanges()["posts"]}


def _end(name):
    """The answer of a run that has ended; None where the exchange began none."""
    exchange = ANSWERS.get(f"run {name}")
    return exchange and exchange["answer"]["body"]


def _is_complete(name):
    end = _end(name)
    return end is not None and {task["status"] for task in end["tasks"]} == {"done"}


COMPLETE = [name for name in POSTS if _is_complete(name) and name not in COMPUTED_ANEW]
AT_ONCE = [
    name
    for name, post in POSTS.items()
    if "body" in post["answer"] and post["method"] in ("POST", "PUT")
]


def _differences(name, found, expected, *, exact=True):
    may = [at for pattern, all_ in MAY_DIFFER.items() if fnmatchcase(name, pattern) for at in all_]
    # A threshold's detail tells more since then.
    found = json.loads(json.dumps(found).replace("; the bound is inside its interval", ""))
    if name == "metrics":
        found = _without_new_metrics(found, expected)
    if name.startswith("sheet ") or (name.startswith("leaderboard ") and name.endswith(" sheet")):
        found = _without_new_columns(found, expected)
    left = (comparing.without(each, may) for each in (expected, found))
    return comparing.differences(*left, exact=exact)


def _without_new_metrics(found, expected):
    """The answer of `GET /v1/metrics` without metrics that were added since it was recorded."""
    known = {item["name"] for item in expected["body"]["items"]}
    items = [item for item in found["body"]["items"] if item["name"] in known]
    return {**found, "body": {**found["body"], "items": items}}


def _without_new_columns(found, expected):
    """A sheet without columns that were added since it was recorded."""
    head, *_ = csv.reader(io.StringIO(expected["body"]))
    rows = [*csv.reader(io.StringIO(found["body"]))]
    left = [*rows[0]]
    places = []
    for name in head:  # two columns may have one name
        places.append(left.index(name))
        left[places[-1]] = None
    text = io.StringIO()
    csv.writer(text).writerows([row[place] for place in places] for row in rows)
    return {**found, "body": text.getvalue()}


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def client(request, serve_here, tmp_path_factory):
    """Client of a service on the restored home, in this process. The service computes nothing."""
    folder = tmp_path_factory.mktemp("golden") / "home"
    with ExitStack() as stack:
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
    """Answers to the posts and uploads, sent once more."""
    return {name: _asked(client, POSTS[name]) for name in [*COMPLETE, *AT_ONCE]}


def _asked(client, exchange):
    request = telling.request_of(exchange)
    if "file" in exchange:
        request["content"] = _content(exchange)
    return telling.answer_of(client.request(**request))


def _content(post):
    return home.objects()[post["digest"]] if "digest" in post else post["content"].encode("latin-1")


@pytest.mark.long
@pytest.mark.parametrize("name", ANSWERS)
def test_a_restored_home_answers_as_it_did(answers, name):
    assert _differences(name, answers[name], ANSWERS[name]["answer"]) == []


@pytest.mark.long
@pytest.mark.parametrize("name", COMPLETE)
def test_what_was_computed_is_not_computed_again_and_scores_the_same(answers_again, name):
    found, end = answers_again[name]["body"], _end(name)
    assert answers_again[name]["status"] in (httpx.codes.CREATED, httpx.codes.ACCEPTED)
    assert {(task["status"], task["cached"]) for task in found["tasks"]} == {("done", True)}
    assert found["status"] == "succeeded"
    brought = [member for member in _BROUGHT if member in end]
    assert brought
    for member in brought:
        both = ({"body": {member: body[member]}} for body in (found, end))
        assert _differences(f"run {name}", *both) == [], member


@pytest.mark.long
@pytest.mark.parametrize("name", AT_ONCE)
def test_what_was_refused_is_refused_again_and_what_was_taken_in_is_there(answers_again, name):
    """By now, some scores of a checkpoint are known."""
    found, expected = answers_again[name], POSTS[name]["answer"]
    if expected["status"] == httpx.codes.CREATED:
        expected = {**expected, "status": int(httpx.codes.OK)}
    found, expected = (comparing.without(each, ["/body/cached"]) for each in (found, expected))
    assert _differences(name, found, expected) == []


@pytest.fixture(scope="module")
def anew(spice_jars, tmp_path_factory):
    """The whole story told to an empty home: its exchanges, and the rows of its tasks."""
    folder = tmp_path_factory.mktemp("anew")
    home.restore_assets(folder / "home")
    files = {post["file"]: _content(post) for post in POSTS.values() if "file" in post}
    first = Fleet(folder / "home", PRESCORE_ASSETS=str(spice_jars[0].parent))
    posts, read = telling.tell(first, Fleet(folder / "home", PRESCORE_ASSETS=""), files)
    home.make_backup(folder / "home", folder / "home.tar")
    return [*posts, *read], home.read_tasks(folder / "home.tar")


@pytest.fixture(scope="module")
def golden_tasks():
    with home.unpacked_backup() as backup:
        return home.read_tasks(backup)


def _is_same_machine():
    return home.exchanges()["made_on"] == home.kind_of_machine()


@pytest.fixture(scope="module")
def both(anew):
    """The answers then and now, with ids and times in one form."""
    exact = _is_same_machine()
    then = [*POSTS.values(), *ANSWERS.values()]
    return tuple(comparing.normal(exchanges, exact=exact) for exchanges in (then, anew[0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*POSTS, *ANSWERS])
def test_told_anew_it_is_the_same_story(both, name):
    then, now = both
    exact = _is_same_machine() and not comparing.is_of_study({**POSTS, **ANSWERS}[name])
    assert _differences(name, now[name], then[name], exact=exact) == []


@pytest.mark.slow
def test_told_anew_all_tasks_have_the_keys_that_they_had(anew, golden_tasks):
    """On a machine of another kind, tasks that are made of scores have other keys."""
    then, now = (home.keys_by_kind(rows) for rows in (golden_tasks, anew[1]))
    assert {kind: len(keys) for kind, keys in now.items()} == {
        kind: len(keys) for kind, keys in then.items()
    }
    if _is_same_machine():
        kinds = then.keys() - KINDS_THAT_NAME_RUNS
        assert {kind: now[kind] for kind in kinds} == {kind: then[kind] for kind in kinds}


@pytest.mark.slow
def test_told_anew_all_tasks_write_the_same_bytes(anew, golden_tasks):
    """On a machine of the same kind. What is made of ids of runs, which are drawn, differs."""
    if not _is_same_machine():
        made_on = home.exchanges()["made_on"]
        pytest.skip(f"the last bits of scores are those of {made_on}")
    then, now = (home.results_by_key(rows) for rows in (golden_tasks, anew[1]))
    common = then.keys() & now.keys()
    assert len(common) > 0.8 * len(then)
    assert {key: now[key] for key in common} == {key: then[key] for key in common}
