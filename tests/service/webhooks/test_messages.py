"""What webhooks are told: small, and without power over what shows it."""

import json
import re
from urllib.parse import unquote

import pytest

from helpers.hostile_text import HOSTILE
from prescore.models.comparisons import CaptionDrops
from prescore.models.evaluations import Fall
from service.contract import limits
from service.webhooks import messages
from service.webhooks.messages import EndedRun

RUN = EndedRun(
    id="ev_1",
    kind="evaluation",
    status="succeeded",
    dataset="flickr8k@v1/test",
    at=0.0,
    path="/v1/evaluations/ev_1",
    verdict="failed",
    gates=[("cider_d >= baseline - 0.01", "failed"), ("bleu_4 > 0.2", "passed")],
    scores={"cider_d": 0.41234, "bleu_4": None},
    labels={"branch": "main", "commit": "abc123", "other": "x"},
)
PLACE = "https://prescore.example"
PAGES = "https://scores.example"
PAGE = f"{PAGES}/ui/evaluations/ev_1"
POWERFUL = [
    "<!channel>",
    "<!here|all>",
    "<@U0001>",
    "<https://evil.example|https://prescore.example>",
    "@all @channel @here",
    "[open](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "https://evil.example",
    "&lt;!channel&gt;",
    "`code` *bold* ~gone~",
    ":rotating_light:",
    "a\nb\r\u2028c",
    *HOSTILE.values(),
]
POWER = re.compile(r"[<>&@!\[\]`*~:|\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _with(**changed):
    return EndedRun(**{**RUN.__dict__, **changed})


def _standard(run, event="run.succeeded"):
    return messages.format_standard_message(run, event, PLACE, PAGES)


def _slack(run, event="run.succeeded"):
    return json.loads(messages.format_slack_message(run, event, PLACE, PAGES))["text"]


def test_a_run_is_told_with_ids_scores_verdict_and_its_address():
    found = json.loads(_standard(RUN))
    assert (found["type"], found["timestamp"]) == ("run.succeeded", "1970-01-01T00:00:00.000Z")
    as_they_are = ("id", "kind", "status", "dataset", "verdict", "scores", "labels")
    assert found["data"] == {
        **{name: getattr(RUN, name) for name in as_they_are},
        "gates": [{"gate": gate, "verdict": verdict} for gate, verdict in RUN.gates],
        "falls": [],
        "url": "https://prescore.example/v1/evaluations/ev_1",
        "page": "https://scores.example/ui/evaluations/ev_1",
    }


def test_slack_is_told_in_one_line():
    assert _slack(RUN, "verdict.failed") == (
        "evaluation ev_1 on flickr8k v1/test: failed; "
        "not passed: cider_d &gt;= baseline - 0.01; cider_d 0.4123; branch main; commit abc123 "
        "<https://scores.example/ui/evaluations/ev_1|open>"
    )


def _fall(run="merge-64", **changed):
    fields = {"metric": "cider_d", "kind": "run", "step": 5, "value": 3.34, "expected": 4.1}
    beside = {"evaluation": "ev_0", "labels": {"run": run}}
    told = {"difference": -1.03, "interval": (-1.31, -0.77), "beside": beside}
    return Fall.model_validate({**fields, **told, **changed})


def test_a_fall_is_told_with_its_numbers_and_to_slack_in_a_line():
    run = _with(falls=[_fall()])
    (told,) = json.loads(_standard(run))["data"]["falls"]
    assert told == {**_fall().model_dump(mode="json"), "beside": "ev_0"}
    first, line = _slack(run).split("\n")
    assert first == _slack(RUN)
    assert line == (
        "fall: cider_d 3.34 at step 5 is 1.03 (0.77, 1.31) below merge-64 at the same step"
    )


@pytest.mark.parametrize("text", [*POWERFUL, "x" * 500])
def test_the_other_run_of_a_fall_is_plain_in_slack(text):
    _, line = _slack(_with(falls=[_fall(text)])).split("\n")
    assert not POWER.search(re.sub("&(lt|gt);", "", line.removeprefix("fall: ")))
    assert len(line) < 220


def test_a_run_that_the_page_does_not_show_has_its_address_alone():
    run = _with(id="cmp_1", kind="comparison", path="/v1/comparisons/cmp_1")
    data = json.loads(_standard(run))["data"]
    assert (data["page"], data["url"]) == (None, f"{PLACE}/v1/comparisons/cmp_1")
    line = _slack(run)
    assert line.endswith(f" <{PLACE}/v1/comparisons/cmp_1|open>")


def test_an_event_is_of_the_runs_end_and_of_its_verdict():
    assert RUN.events == ["run.succeeded", "verdict.failed"]
    assert _with(verdict=None, status="canceled").events == ["run.canceled"]


def _drops(image, caption, images=3):
    scores = {"cider_d": {"a": 0.1, "b": None, "difference": None}}
    moved = {"image": image, "a": caption, "b": caption, "scores": scores}
    fields = {"gate": "g", "metric": "cider_d", "baseline": "ev_0", "images": [moved] * images}
    return CaptionDrops.model_validate(fields)


@pytest.mark.parametrize("text", POWERFUL)
def test_captions_and_images_in_slack_are_plain(text):
    first, line = _slack(_with(drops=_drops(text, text, images=1))).split("\n")
    assert first == _slack(RUN)
    link, told = re.fullmatch(r"<([^<>|]*\|[^<>|]*)>: (.*)", line).groups()
    url, image = link.split("|")
    name = unquote(url.removeprefix(f"{PAGE}/images/").removesuffix("?with=ev_0"))
    assert url == PAGE or name == text
    known, before, now = told.split("; ", 1)[0], *re.split("; now: ", told.split("; ", 1)[1])
    assert known == "cider_d - to 0.1"
    assert before == f"before: {now}"
    assert not POWER.search(re.sub("&(lt|gt);", "", image + now))
    assert len(re.sub("&(lt|gt);", "x", now)) <= 200


@pytest.mark.parametrize("text", POWERFUL)
@pytest.mark.parametrize("field", ["branch", "gate"])
def test_other_peoples_text_in_slack_is_plain(text, field):
    run = _with(labels={"branch": text}) if field == "branch" else _with(gates=[(text, "failed")])
    line = _slack(run)
    told = line.removesuffix(f"; branch main; commit abc123 <{PAGE}|open>")
    told = told.removesuffix(f" <{PAGE}|open>")
    before = "evaluation ev_1 on flickr8k v1/test: succeeded; "
    assert told.startswith(before)
    foreign = re.sub("not passed: |&(lt|gt);", "", told.removeprefix(before))
    assert not POWER.search(foreign)
    assert line.count("<") == 1


def test_letters_of_all_alphabets_stay():
    assert messages.strip_markup("Zweig-é/ветка/分支_2") == "Zweig-é/ветка/分支_2"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_is_ascii_on_one_line(text):
    written = _standard(_with(labels={"branch": text}))
    assert written.isascii()
    assert "\n" not in written
    assert json.loads(written)["data"]["labels"] == {"branch": text}


def test_the_largest_message_is_small():
    """As Standard Webhooks recommends: 20 kB."""
    run = _with(
        gates=[("g" * 200, "not_comparable")] * messages._GATES,
        scores={f"{'s' * 90}{n}": 0.12345678901234567 for n in range(messages._SCORES)},
        falls=[_fall(metric="m" * 90, value=1 / 3, expected=2 / 3)] * messages._FALLS,
        labels={f"{'l' * 98}{n:02}": "v" * messages._LABEL for n in range(messages._LABELS)},
    )
    assert len(_standard(run, "verdict.not_comparable")) < 20_000
    longest = _with(**{**run.__dict__, "drops": _drops("\U00020000" * 500, "\U00020000" * 10_000)})
    message = messages.format_slack_message(longest, "verdict.failed", PLACE, PAGES)
    assert len(message.encode()) < 20_000
    assert limits.LABELS > messages._LABELS
