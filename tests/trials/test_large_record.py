"""T60: the cost of an answer does not depend on the number of evaluations in the record.

In this process, through a team's connection. The work of SQLite is counted in instructions, that of
PostgreSQL in rows: the same numbers on every computer.
"""

import json
import re

import pytest
import sqlalchemy as sa

from helpers import seeding, statements
from helpers.fleet import bundle, checkpoint, until_ended, upload

MADE = 4
SIZES = 48, 480  # few and many evaluations
ON_SPLIT = {"dataset": "tiny/test", "tokenizer": "none"}
USUAL = {"postgen": ["bleu", "cider_d"], "decoding": {"beam": 1, "max_words": 8}}
CAPTIONS = {
    "captions": [{"image": f"{at}.jpg", "caption": "w3 w4 w5"} for at in range(40)],
    "postgen": ["cider_d"],
}
GATED = CAPTIONS | {"gates": ["cider_d >= baseline - 0.5"]}
# 12 are more rows than SQLite expects of a team.
READ = {
    "leaderboard": "/v1/datasets/tiny/leaderboard?split=test&limit=12",
    "history": "/v1/datasets/tiny/history?split=test&limit=12",
    "list": "/v1/evaluations?limit=12",
    "list of a label": "/v1/evaluations?limit=12&label.branch=main",
    "list of a dataset": "/v1/evaluations?limit=12&dataset=other",
    "list of a split": "/v1/evaluations?limit=12&dataset=other/test",
    "list of a status": "/v1/evaluations?limit=12&status=succeeded",
    "checkpoint": "/v1/checkpoints/{scored}",
    "evaluation": "/v1/evaluations/{evaluation}",
    "queues": "/v1/queues",
    "workers": "/v1/workers",
    "pre-gen scores": "/v1/evaluations/{evaluation}/pregen",
    "events": "/v1/evaluations/{evaluation}/events",
}
POSTED = {
    "captions": CAPTIONS,
    "baseline of a label": GATED | {"baseline": "branch=main"},
    "best baseline": GATED | {"baseline": "best"},
    "checkpoint": USUAL | {"checkpoint": "{checkpoint}"},
}
# Of these, as much as the latest 200 evaluations is read, and no more, if nothing else is said; so
# for a forecast.
OF_200 = {
    "correlations": "/v1/datasets/tiny/correlations?split=test",
    "list of 200": "/v1/evaluations?limit=200",
    "labels": "/v1/labels",  # of 5,000
    "labels of a dataset": "/v1/labels?dataset=other/test",
}
MORE = 5  # statements, where some evaluations have not ended, and where a forecast is planned
MOST_KB = 40
SMALL = {"datasets", "boards", "alembic_version", "sqlite_schema"}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("large") / "home") as service:
        service.kilobytes = _begin(service)
        yield service


def _begin(service):
    """Make the evaluations that are copied; no other task is performed. Returns the kB of one."""
    with service.client() as client:
        for name in ("tiny", "other"):
            answer = client.put(f"/v1/datasets/{name}", content=bundle(40, seed=len(name)))
            assert answer.status_code == 201
        sizes = []
        for number in range(MADE):
            labels = {"branch": "dev" if number % 2 else "main", "run": str(number)}
            dataset = "other/test" if number == 3 else "tiny/test"
            given = upload(client, checkpoint(number))
            asked = ON_SPLIT | USUAL | {"checkpoint": given, "labels": labels}
            answer = client.post("/v1/evaluations", json=asked | {"dataset": dataset})
            ended = until_ended(client, answer.json()["id"], 60)
            assert ended["status"] == "succeeded", ended
            sizes.append(_bytes(service.records))
    service.hold()
    return (sizes[2] - sizes[0]) / 2 / 1000


@pytest.fixture(scope="module")
def costs(service):
    """For each request, its statements at few and at many evaluations."""
    found, filled = [], MADE
    for many, at in zip(SIZES, (61, 57), strict=True):
        seeding.multiply(service.records, many // filled, at)
        filled = many
        with service.client() as client:
            found.append(_costs(service, client))
    return found


def _costs(service, client, watched=statements.watched):
    known = {
        "checkpoint": upload(client, checkpoint(9)),
        "scored": upload(client, checkpoint(0)),
        "evaluation": client.get("/v1/evaluations?status=succeeded&limit=1").json()["items"][0][
            "id"
        ],
    }
    found = {}
    for name, path in (READ | OF_200).items():
        found[f"GET {name}"] = _asked(service, client, watched, "GET", path.format(**known))
    for name, body in POSTED.items():
        text = json.dumps(ON_SPLIT | body).replace("{checkpoint}", known["checkpoint"])
        found[f"POST {name}"] = _asked(
            service, client, watched, "POST", "/v1/evaluations", json=json.loads(text)
        )
    return found


def _asked(service, client, watched, method, path, **more):
    with watched(service.records.engine) as found:
        answer = client.request(method, path, **more)
        assert answer.is_success, answer.text
    return found


def _bytes(records):
    if not records.is_file:
        return 0
    pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    with records.reading() as connection:
        return connection.execute(sa.text(pages)).scalar_one()


POSTS = [f"POST {name}" for name in POSTED]
NAMES = [*(f"GET {name}" for name in READ), *(name for name in POSTS if name != "POST checkpoint")]
LATEST = [*(f"GET {name}" for name in OF_200), "POST checkpoint"]


@pytest.mark.parametrize("name", NAMES)
def test_ten_times_the_evaluations_cost_no_more(costs, name):
    few, many = (each[name] for each in costs)
    assert abs(len(many) - len(few)) <= 3  # tasks that are there already have other statements
    before, after = (sum(each.steps for each in found) for found in (few, many))
    assert after < 1.5 * before + 200, (before, after)


@pytest.mark.parametrize("name", [*NAMES, *LATEST])
def test_every_statement_reads_by_an_index(costs, name):
    scanned = {
        (found[1], each.text)
        for each in costs[1][name]
        for line in each.plan
        if (found := re.match(r"SCAN (\w+)$", line)) and found[1] not in SMALL
    }
    assert all(re.fullmatch(r"anon_\d", name) for name, _ in scanned), scanned


@pytest.mark.parametrize("name", [*NAMES, *LATEST])
def test_no_statement_reads_all_rows_of_the_team(costs, name):
    read = {
        (found[1], each.text)
        for each in costs[1][name]
        for line in each.plan
        if (found := re.match(r"SEARCH (\w+) .*\(team=\?\)$", line)) and found[1] not in SMALL
    }
    assert read == set()


@pytest.mark.parametrize("name", LATEST)
def test_what_reads_many_evaluations_reads_them_all_at_once(costs, name):
    few, many = (len(each[name]) for each in costs)
    assert many <= few + MORE, (few, many)


def test_an_evaluation_is_small(service):
    assert service.kilobytes < MOST_KB


@pytest.mark.slow
def test_20000_evaluations_cost_as_much_as_1000(serve_here, postgres_record, tmp_path):
    """On PostgreSQL."""
    url = postgres_record.url.render_as_string(hide_password=False)
    found = []
    with serve_here(tmp_path / "home", url=url) as service:
        _begin(service)
        for times, at in (250, 61), (20, 57):
            seeding.multiply(service.records, times, at)
            with service.client() as client:
                found.append(_costs(service, client, statements.explained))
    worse = {}
    for name in {*NAMES} - {"GET queues"}:  # which counts what the requests before have begun
        before, after = (sum(each.steps for each in one[name]) for one in found)
        if after > 1.5 * before + 200:
            most = max(found[1][name], key=lambda each: each.steps)
            worse[name] = before, after, most.plan, most.text
    assert worse == {}
