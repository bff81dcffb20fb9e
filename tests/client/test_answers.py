"""Answers in a program: short in a console, as tables, with links; names that are nearly right."""

import pickle
import sys
import types
from xml.etree import ElementTree as ET

import pytest

import prescore
from client.scripted_service import score
from helpers.hostile_text import HOSTILE, check_plain
from prescore import names
from prescore.client.lists import Scores
from prescore.models import Comparison, Evaluation, Score, SignalCard
from prescore.plain_text import quoted

HARSH = "".join(HOSTILE[name] for name in ("page", "marks", "terminal", "formula"))
HUNDRED = {f"metric_{n}": score(n / 10) for n in range(100)}


@pytest.fixture
def tables(monkeypatch):
    """In place of pandas, which need not be installed: what its DataFrame is made of."""

    class DataFrame(list):
        index = None

        def set_index(self, name):
            self.index = name
            return self

        def __contains__(self, name):
            return name in self[0]

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=DataFrame))


def test_an_answer_is_short_in_a_console(service, client):
    service.start(scores=HUNDRED, labels={"branch": "main"})
    shown = repr(client.evaluation("ev_1"))
    assert shown.startswith("<Evaluation ev_1 running shapes@v1/test metric_0=0 metric_1=0.1")
    assert len(shown) < 120
    assert repr(client.dataset("shapes")) == "<Dataset shapes@v1 test=2 val=2>"
    for listing in (client.evaluations(), client.captions("ev_1"), client.leaderboard("shapes")):
        assert len(repr(listing)) < 120
    assert repr(client.pregen("ev_1")) == "<Scores of 1 metric>"


def test_a_short_form_is_plain_text():
    shown = repr(Evaluation(id="ev_1", status="\x1b[2J\n::error::", dataset={"name": "x"}))
    assert "\x1b" not in shown
    assert "\n" not in shown


def test_answers_know_their_links(service, client):
    service.start()
    base = f"{service.url}/v1"
    evaluation = client.evaluation("ev_1")
    assert evaluation.url == f"{service.url}/ui/evaluations/ev_1"  # the page, for people
    assert evaluation.api_url == evaluation.links["self"] == f"{base}/evaluations/ev_1"
    assert evaluation.links["captions"] == f"{base}/evaluations/ev_1/captions"
    assert next(client.evaluations()).url == evaluation.url
    assert client.dataset("shapes").links["leaderboard"] == f"{base}/datasets/shapes@v1/leaderboard"
    assert pickle.loads(pickle.dumps(evaluation)).url == evaluation.url  # noqa: S301  our own


@pytest.mark.parametrize(
    ("link", "pages"),
    [
        (
            '<https://scores.example.org/ui/>; rel="alternate"; type="text/html"',
            "https://scores.example.org",
        ),
        ('<http://[::1]:8000/ui/>; rel="alternate"', "http://[::1]:8000"),
        ('<https://scores.example.org/ui/>; rel="next"', None),
        ('<https://scores.example.org/other/>; rel="alternate"', None),
        ('<javascript:alert(1)//ui/>; rel="alternate"', None),
        ('<https://user@scores.example.org/ui/>; rel="alternate"', None),
        ('<https://scores.example.org)[x/ui/>; rel="alternate"', None),
        (f'<https://{"s" * 300}/ui/>; rel="alternate"', None),
    ],
)
def test_a_public_address_of_the_page_is_heeded_where_it_is_one(service, client, link, pages):
    service.start()
    service.answer_headers["Link"] = link
    evaluation = client.evaluation("ev_1")
    assert evaluation.url == f"{pages or service.url}/ui/evaluations/ev_1"
    assert evaluation.api_url == f"{service.url}/v1/evaluations/ev_1"


def test_a_list_becomes_rows_and_a_frame(service, client, tables):
    service.start(scores={"cider_d": score(0.4, interval=[0.3, 0.5])})
    [row] = client.evaluations().to_frame()
    found = (row["id"], row["dataset.split"], row["scores.cider_d.low"], row["scores.cider_d.high"])
    assert found == ("ev_1", "test", 0.3, 0.5)
    captions = client.captions("ev_1").to_frame()
    assert [each["scores.cider_d"] for each in captions] == [0, 0.1, 0.2, 0.3, 0.4]
    pregen = client.pregen("ev_1").to_frame()
    assert (pregen.index, pregen[0]["metric"], pregen[0]["value"]) == ("metric", "perplexity", 12.5)


def test_pandas_itself_makes_frames(service, client):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; a stand-in is tested")
    service.start(scores={"cider_d": score(0.4, interval=[0.3, 0.5])})
    evaluations = client.evaluations().to_frame()
    assert isinstance(evaluations, pandas.DataFrame)
    assert evaluations["scores.cider_d.low"].tolist() == [0.3]
    captions = client.captions("ev_1").to_frame()
    assert captions["scores.cider_d"].sum() == pytest.approx(1)
    assert client.pregen("ev_1").to_frame().loc["perplexity", "value"] == 12.5


def test_without_pandas_a_sentence_says_what_to_do(service, client, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    service.start()
    with pytest.raises(prescore.PrescoreClientError, match="pip install pandas"):
        client.captions("ev_1").to_frame()
    assert len(client.captions("ev_1").to_rows()) == 5


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cider", ["cider_d"]),
        ("CIDER_D", ["cider_d"]),
        ("meteeor", ["meteor"]),
        ("blue_4", ["bleu_4", "bleu_1"]),
        ("zzz", []),
        ("b" * 5000, []),  # like a long one that is known: comparing them takes the square of it
    ],
)
def test_near_names_are_those_that_look_alike(name, near):
    known = ["bleu_1", "bleu_4", "cider_d", "meteor", "rouge_l", "b" * 5001]
    assert names.find_near_names(name, known) == near


def test_an_argument_that_is_misspelt_is_told_with_the_near_one(client):
    with pytest.raises(prescore.InvalidArgument, match="unknown argument postgem: did you mean"):
        client.submit("shapes/test", captions=[], postgem=["cider_d"])


TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
BOTH = {"a": 0.5, "b": 0.25}
TABLED = {
    "evaluation": (
        {"scores": {HARSH: score(0.123456789, interval=[0.1, 0.2], signature=HARSH)}},
        Evaluation,
    ),
    "comparison": (
        {"a": "ev_1", "b": "ev_2", "scores": {HARSH: {"a": 0.5, "b": 0.25}}},
        Comparison,
    ),
    "signal": ({"target": HARSH, "metrics": [{"metric": HARSH, "snr": 2.5}]}, SignalCard),
}


@pytest.mark.parametrize("name", TABLED)
def test_a_notebook_shows_a_table_in_which_all_text_is_escaped(name):
    fields, model = TABLED[name]
    pinned = {"name": HARSH, "version": "v1", "digest": "d", "split": HARSH}
    common = {} if model is SignalCard else {"id": "xx_1", "status": HARSH}
    shown = model.model_validate({**common, "dataset": pinned, **fields})._repr_html_()
    tree = ET.fromstring(shown)  # noqa: S314  our own
    assert {each.tag for each in tree.iter()} <= TAGS
    assert tree.find("tbody/tr/td").text == quoted(HARSH)
    check_plain("".join(tree.itertext()))


def test_a_leaderboard_in_a_notebook_loses_no_row(service, client):
    rows = [
        {
            "rank": at,
            "tied": at == 1,
            "evaluation": f"ev_{at}",
            "value": at / 8,
            "labels": {"a": "<b>"},
        }
        for at in (1, 2)
    ]
    pinned = {"name": "shapes", "version": "v1", "digest": "d", "split": "test"}
    page = {"items": rows, "next": None, "dataset": pinned, "metric": "cider_d"}
    service.fault("GET", "/leaderboard", status=200, body=page, times=1)
    board = client.leaderboard("shapes/test")
    tree = ET.fromstring(board._repr_html_())  # noqa: S314  our own
    cells = [[cell.text for cell in row] for row in tree.findall("tbody/tr")]
    assert cells == [
        ["=1", "ev_1", "0.125", None, None, "a=<b>"],
        ["2", "ev_2", "0.25", None, None, "a=<b>"],
    ]
    assert [each.evaluation for each in board] == ["ev_1", "ev_2"]
    assert client.leaderboard("none/test")._repr_html_() is None  # the service refuses it


def test_many_rows_are_not_all_shown():
    shown = Scores({f"m{at}": Score(**score(0.5)) for at in range(130)})._repr_html_()
    assert shown.count("<tr>") == 101
    assert "30 more rows" in shown


def test_evaluations_and_comparisons_become_frames(tables, service, client):
    service.start(scores={"cider_d": score(0.4, interval=[0.3, 0.5])})
    frame = client.evaluation("ev_1").to_frame()
    assert frame.index == "metric"
    found = {"metric": "cider_d", "value": 0.4, "low": 0.3, "high": 0.5, "family": "postgen"}
    assert frame == [{**found, "higher_is_better": True, "signature": "s"}]
    compared = {"a": 0.5, "b": 0.4, "difference": 0.1, "interval": [0.05, 0.2], "p": 0.01}
    pinned = {"name": "shapes", "version": "v1", "digest": "d", "split": "test"}
    fields = {"id": "cp_1", "status": "succeeded", "dataset": pinned, "a": "ev_1", "b": "ev_2"}
    (row,) = Comparison(**fields, scores={"spice": compared}).to_frame()
    compared.pop("interval")
    wanted = {"metric": "spice", **compared, "low": 0.05, "high": 0.2, "minimum_detectable": None}
    assert row == wanted


def test_without_pandas_an_answer_says_what_to_do(service, client, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    service.start(scores={"cider_d": score(0.4)})
    with pytest.raises(ImportError, match="pip install pandas"):
        client.evaluation("ev_1").to_frame()
