"""Several metrics of the evaluations on a board, in one request."""

import csv

import pytest

from helpers.fleet import checkpoint, upload
from helpers.submissions import evaluate
from prescore import AsyncClient, Client

QUICK = {"beam": 1, "min_words": 1, "max_words": 5}


def _evaluated(client, **asked):
    return evaluate(client, tokenizer="none", decoding=QUICK, **asked)


@pytest.fixture(scope="module")
def found(service):
    """`both` is of captions; the two others have one checkpoint."""
    said = [{"image": f"{at}.jpg", "caption": f"w2 w{at % 7}"} for at in range(40)]
    same = checkpoint(seed=51)
    with service.client() as client:
        model = upload(client, same)
        return {
            "both": _evaluated(client, captions=said, postgen=["bleu", "rouge_l"]),
            "early": _evaluated(client, checkpoint=model, pregen=[], postgen=["rouge_l"]),
            "late": _evaluated(client, checkpoint=model, postgen=["bleu"]),
        }


def _board(client, query, of="leaderboard"):
    answer = client.get(f"/v1/datasets/tiny/{of}?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("of", ["leaderboard", "history"])
def test_each_row_has_the_other_metrics_of_its_evaluation(client, found, of):
    board = _board(client, "metrics=bleu_1,rouge_l,perplexity", of)
    rows = {row["evaluation"]: row for row in board["items"]}
    assert board["metric"] == "bleu_1"
    both, late = found["both"], found["late"]
    own = both["scores"]["rouge_l"]
    assert rows[both["id"]]["scores"] == {
        "rouge_l": {"evaluation": both["id"], **{n: own[n] for n in ("value", "interval")}}
    }
    assert rows[late["id"]]["scores"]["perplexity"]["value"] == pytest.approx(
        late["scores"]["perplexity"]["value"]
    )
    assert board["beside"] == {
        "rouge_l": own["signature"],
        "perplexity": late["scores"]["perplexity"]["signature"],
    }


def test_what_another_evaluation_of_the_checkpoint_has_stands_there_with_its_id(client, found):
    rows = {one["evaluation"]: one for one in _board(client, "metrics=bleu_1,rouge_l")["items"]}
    early = found["early"]
    beside = rows[found["late"]["id"]]["scores"]["rouge_l"]
    assert beside["evaluation"] == early["id"]
    assert beside["value"] == early["scores"]["rouge_l"]["value"]


@pytest.mark.usefixtures("found")
def test_what_has_no_direction_ranks_no_board(client):
    asked = "metrics=caption_length, rouge_l"
    assert _board(client, asked)["metric"] == "rouge_l"
    assert _board(client, asked, "history")["metric"] == "caption_length"


def test_a_sheet_has_a_column_for_each(client, found):
    place = "/v1/datasets/tiny/leaderboard?metrics=bleu_1,rouge_l"
    sheet = client.get(place, headers={"Accept": "text/csv"}).text
    rows = {row["evaluation"]: row for row in csv.DictReader(sheet.splitlines())}
    both = found["both"]
    assert float(rows[both["id"]]["rouge_l"]) == both["scores"]["rouge_l"]["value"]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("metrics=bleu_1,cidr_d", "/query/metrics"),
        ("metrics=cidr_d", "/query/metrics"),
        ("metric=", "/query/metric"),
        ("metric=cidr_d", "/query/metric"),
        ("metrics=", "/query/metrics"),
        ("metrics=bleu_1,,rouge_l", "/query/metrics"),
        ("metrics=" + ",".join(f"a{at}" for at in range(21)), "/query/metrics"),
        ("metrics=" + "a" * 2001, "/query/metrics"),
    ],
)
def test_metrics_that_are_none_or_too_many_are_refused(client, query, pointer):
    problem = client.get(f"/v1/datasets/tiny/leaderboard?{query}").json()
    assert problem["status"] == 422
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


@pytest.mark.parametrize("of", ["leaderboard", "history"])
def test_the_metric_may_stand_second_and_nothing_after_it(service, found, of):
    with Client(service.url) as client:
        board = getattr(client, of)
        assert board("tiny/test", "rouge_l").head.metric == "rouge_l"
        with pytest.raises(TypeError, match=rf'{of}\("flickr8k/test", "cider_d"\), .* by name'):
            board("tiny", "test", "cider_d")
    other = getattr(AsyncClient(service.url), of)
    with pytest.raises(TypeError, match=rf"found {of}\('tiny', 'test', 'cider_d'\)"):
        other("tiny", "test", "cider_d")


def test_the_client_asks_once(service, found):
    with Client(service.url) as client:
        board = client.leaderboard("tiny/test", metric="bleu_1", metrics=["rouge_l"])
        rows = {row.evaluation: row for row in board}
    both = found["both"]
    assert rows[both["id"]].scores["rouge_l"].value == both["scores"]["rouge_l"]["value"]
