"""T54: whatever a body holds too much of, it is refused within a second, in little memory, and
nobody else waits for that.
"""

import json
import time

import httpx
import pytest

from helpers import load_probes
from service.contract import limits

BYTES = limits.BODY_BYTES - 1000
SOON = 1  # seconds


def _many(values, before, one, after="}"):
    """A body of many equal things: as many as fit, or as `values` allows."""
    each = 1 + sum(map(one.count, ",[{"))
    count = min((BYTES - len(before) - len(after)) // (len(one) + 1), values // each)
    return f"{before}[{','.join([one] * count)}]{after}"


def _keys(values, before, value, after="}"):
    count = min(BYTES // (len(value) + 12), values)
    return before + ",".join(f'"k{number:07}":{value}' for number in range(count)) + after


def _of(field, more=""):
    return f'{{{more}"dataset":"tiny/test","{field}":'


CHECKPOINT = f'"checkpoint":"sha256:{"0" * 64}",'
BODIES = {
    "evaluations": {
        "numbers for metrics": lambda n: _many(n, _of("pregen", CHECKPOINT), "1"),
        "one metric again and again": lambda n: _many(n, _of("postgen", CHECKPOINT), '"cider_d"'),
        "names that are none": lambda n: _many(n, _of("trust", CHECKPOINT), '"ab"'),
        "empty gates": lambda n: _many(n, _of("gates", CHECKPOINT), '""'),
        "empty captions": lambda n: _many(n, _of("captions"), "{}"),
        "empty lists for captions": lambda n: _many(n, _of("captions"), "[]"),
        "captions with unknown keys": lambda n: _many(
            n, _of("captions"), '{"image":"1","caption":"a","b":1}'
        ),
        "captions with an emoji": lambda n: _many(
            n, _of("captions"), '{"image":"\\ud83d\\ude00","caption":"a"}'
        ),
        "broken text": lambda n: _many(n, _of("captions"), '"\\ud83d\\ude00"', ',"a":"\\ud800"}'),
        "unknown keys": lambda n: _keys(n, '{"dataset":"tiny/test","captions":[],', "1"),
        "one key again and again": lambda n: "{" + '"a":1,' * min(n, BYTES // 6) + '"b":1}',
        "labels": lambda n: _keys(n, _of("labels") + "{", '"x"', "}}"),
        "a label of 31 MB": lambda _: f'{{"labels":{{"a":"{"x" * BYTES}"}}}}',
        "a dataset's name of 31 MB": lambda _: f'{{"dataset":"{"x/" * (BYTES // 2)}"}}',
        "a number of 31 MB": lambda _: '{"deadline":' + "1" * BYTES + "}",
        "lists in lists": lambda n: "[" * min(n, BYTES),
    },
    "probes": {
        "swaps": lambda n: _many(n, _of("options") + '{"swaps":', '["a","b"]', "}}"),
        "frequent words": lambda n: _many(n, _of("options") + '{"frequent":', '"a"', "}}"),
        "probes": lambda n: _many(n, _of("probes"), '"rare"'),
    },
    "comparisons": {
        "metrics to compare": lambda n: _many(n, '{"a":"1","b":"2","metrics":', '"wmd"'),
    },
    "learned": {
        "captioners": lambda n: _many(n, _of("captioners"), '{"name":"a","captions":[{}]}'),
        "rated captions": lambda n: _many(n, _of("stopping"), '{"references":[1,2,3]}'),
        "features": lambda n: _many(n, _of("features"), '"meteor"'),
    },
}


SIZES = {"too many": 10**8, "nearly": limits.VALUES - 1000, "a quarter": limits.VALUES // 4}
# Those that cost most before there were bounds. The ordinary run, whose machine has other work,
# asks them with a quarter of the values; all else is `slow`.
USUAL = {
    "numbers for metrics",
    "captions with an emoji",
    "unknown keys",
    "labels",
    "rated captions",
}


def _cases():
    for route, cases in BODIES.items():
        for case in cases:
            for size, values in SIZES.items():
                usual = size == "a quarter"
                if case in USUAL or not usual:
                    marks = () if usual else pytest.mark.slow
                    yield pytest.param(route, case, values, id=f"{case}-{size}", marks=marks)


@pytest.mark.parametrize(("route", "case", "values"), list(_cases()))
def test_what_is_too_much_is_refused_at_once(fleet, route, case, values):
    """`nearly` as many values as a body may have, so that all else has to be bounded too."""
    data = BODIES[route][case](values).encode()
    headers = {"Content-Type": "application/json"}
    with (
        load_probes.served(fleet, f"{values} {case}", 0.05),
        httpx.Client(base_url=fleet.url, timeout=120) as client,
    ):
        answer, seconds = _soonest(client, route, data, headers)
    told = f"{answer.status_code}, {len(answer.content)} bytes, {seconds:.2f} s"
    print(f"T54 {values} {case}: {told}")
    assert 400 <= answer.status_code < 500
    assert len(answer.content) < 20_000
    assert len(json.loads(answer.content)["errors"]) <= 20
    assert seconds < SOON


def _soonest(client, route, data, headers):
    """The answer and its seconds; of six if need be, since other programs may hold the machine
    for a second: what is slow by itself is slow six times.
    """
    for _ in range(6):
        began = time.monotonic()
        answer = client.post(f"/v1/{route}", content=data, headers=headers)
        seconds = time.monotonic() - began
        if seconds < SOON:
            break
    return answer, seconds
