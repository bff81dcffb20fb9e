"""Answers in a program: short in a console, as tables, with links; names that are nearly right."""

import pickle
import sys
import types

import pytest

import prescore
from client.scripted_service import score
from prescore import names
from prescore.models import Evaluation

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
