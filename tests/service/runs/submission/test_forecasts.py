"""What a forecast learns from."""

import json

import pytest

from helpers.stored_records import PINNED, enter_run, enter_scores, parts_on
from prescore.models.evaluations import NoForecast
from service.contract.api.evaluations import EvaluationRequest
from service.contract.results import MissingForecast, StoredEvaluation
from service.engine.blobs import open_blobs
from service.engine.tables import checkpoints
from service.runs import evaluations
from service.runs.submission import forecast_history
from service.stored import columns

CONFIG = {"cell": "gru", "size": 256, "feature_size": 5}
NEW = f"sha256:{'f' * 64}"


@pytest.fixture
def past(records, tmp_path):
    return _Past(records, open_blobs(None, tmp_path))


class _Past:
    def __init__(self, records, blobs):
        self.records = records
        self.blobs = blobs
        self.count = 0

    def brought(self, digest, **description):
        """Columns, stored."""
        described = {"tokenizer": "own", **description}
        columns.add(self.records, digest, 1, described)
        return digest

    def ended(self, cider=0.4, *, checkpoint=None, shown=None, sign="cider_d|v:1", told=(), **row):
        """An evaluation that has come to its end, later than those before; `columns`: of these,
        whose pre-gen scores are signed `of`.
        """
        self.count += 1
        identity, digest = f"ev_{self.count}", checkpoint or f"sha256:{self.count:064}"
        brought, of = row.pop("columns", None), row.pop("of", "pregen|v:1")
        kept = _request().model_dump() | row.pop("request", {})
        kept |= {} if brought is None else {"checkpoint": None, "columns": brought}
        named = {"architecture": row.pop("architecture", "merge"), "config": CONFIG}
        named |= {"units": row.pop("units", "words")}
        scores = dict.fromkeys(forecast_history.PREDICTORS, 0.3) | {"cider_d": cider}
        scores = scores if shown is None else {name: scores[name] for name in shown}
        with self.records.transaction() as connection:
            self.records.add_new(
                connection,
                checkpoints,
                digest=digest,
                bytes=1,
                description=json.dumps(named),
                created_at=0.0,
            )
            row |= {"checkpoint": digest if brought is None else None, "created_at": self.count}
            enter_run(connection, identity, PINNED, kept, dict(told), **row)
            for name, value in scores.items():
                signature = sign if name == "cider_d" else of
                enter_scores(connection, identity, {name: (value, None, None)}, signature)

    def find(self, **request):
        """The history that a request's forecast reads, and why there is none."""
        found = forecast_history.find_history(
            parts_on(self.records, self.blobs), _request(**request), PINNED
        )
        if not isinstance(found, str):
            return None, found
        return json.loads(self.blobs.path(found).read_text()), None


def _request(**more):
    usual = {"checkpoint": NEW, "dataset": "d/test", "postgen": ["cider_d"]}
    return EvaluationRequest(**(usual | more))


def _eight(past, **more):
    for at in range(8):
        past.ended(at / 10, told={"run": str(at % 2)}, **more)


def test_eight_evaluations_of_two_runs_are_a_history(on_either, tmp_path):
    """On SQLite and PostgreSQL alike."""
    past = _Past(on_either, open_blobs(None, tmp_path))
    _eight(past)
    history, reason = past.find()
    assert reason is None
    assert history["metrics"] == ["cider_d"]
    assert [one["scores"]["cider_d"] for one in history["evaluations"]] == [
        at / 10 for at in reversed(range(8))
    ]
    assert history["evaluations"][0] == {
        "run": "run=1",
        "architecture": "merge",
        "scores": dict.fromkeys(forecast_history.PREDICTORS, 0.3) | {"cider_d": 0.7},
    }


def test_a_thin_history_is_told_at_once_and_needs_no_task(past):
    for _ in range(7):
        past.ended(told={"run": "1"})
    history, reason = past.find()
    assert history is None
    assert reason.none_because.startswith("this split has 7 finished evaluations")
    past.ended(told={"run": "1"})
    assert "one training run" in past.find()[1].none_because
    past.ended(told={"run": "2"})
    assert past.find()[0] is not None


@pytest.mark.parametrize("request_", [{"pregen": []}, {"postgen": []}])
def test_without_pregen_or_postgen_scores_there_is_nothing_to_say(past, request_):
    _eight(past)
    assert past.find(**request_) == (None, None)


OTHERS = [
    {"status": "failed"},
    {"dataset_captions": "sha256:e"},
    {"split": "val"},
    {"units": "pieces"},
    {"request": {"decoding": {"beam": 1, "min_words": 4, "max_words": 50, "unk": False}}},
    {"request": {"tokenizer": "none"}},
    {"request": {"precision": "bf16"}},
    {"shown": ["perplexity", "cider_d"]},
    {"checkpoint": NEW},
]


def test_what_was_computed_otherwise_or_elsewhere_does_not_count(past):
    for other in OTHERS:
        past.ended(0.9, told={"run": str(other)}, **other)
    _eight(past)
    found = past.find()[0]["evaluations"]
    assert sorted({one["run"] for one in found}) == ["run=0", "run=1"]
    assert len(found) == 8


def test_scores_that_are_signed_otherwise_than_the_latest_are_left_out(past):
    past.ended(0.9, sign="cider_d|v:0", told={"run": "old"})
    _eight(past)
    (old,) = [one for one in past.find()[0]["evaluations"] if one["run"] == "run=old"]
    assert "cider_d" not in old["scores"]


def test_a_checkpoint_counts_once_by_its_latest_evaluation(past):
    past.ended(0.1, checkpoint="sha256:same", told={"run": "first"})
    _eight(past)
    past.ended(0.2, checkpoint="sha256:same", told={"run": "again"})
    runs = [one["run"] for one in past.find()[0]["evaluations"]]
    assert runs.count("run=again") == 1
    assert "run=first" not in runs


@pytest.mark.parametrize(
    ("told", "run"),
    [
        ({"run": "7", "branch": "main"}, "run=7"),
        ({"branch": "main", "commit": "c"}, "branch=main"),
        ({"commit": "c"}, "init gru 256"),
    ],
)
def test_runs_are_told_apart_by_run_or_branch_or_what_their_captioners_are(past, told, run):
    _eight(past)
    past.ended(told=told, architecture="init")
    assert past.find()[0]["evaluations"][0]["run"] == run


def test_an_infinite_score_is_null_and_a_group_is_its_metrics(past):
    _eight(past)
    past.ended(None, told={"run": "x"})
    history, _ = past.find(postgen=["bleu", "cider_d"])
    assert history["metrics"] == ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"]
    assert history["evaluations"][0]["scores"]["cider_d"] is None


MINE = f"sha256:{'e' * 64}"


def _asked(**more):
    captions = [{"image": "a.jpg", "caption": "a"}]
    return {"checkpoint": None, "columns": MINE, "captions": captions, **more}


def _of_columns(past, at, of="pregen|brought|tok:own|v:1", **more):
    past.ended(at / 10, columns=f"sha256:{at:064}", of=of, told={"run": str(at % 2)}, **more)


def test_columns_are_forecast_from_columns_of_the_same_signature(on_either, tmp_path):
    past = _Past(on_either, open_blobs(None, tmp_path))
    past.brought(MINE)
    _eight(past)  # checkpoints
    for at in range(8):
        _of_columns(past, at)
    _of_columns(past, 9, split="val")
    _of_columns(past, 7)  # again: the latest counts
    past.ended(0.9, columns=MINE, of="pregen|brought|tok:own|v:1", told={"run": "x"})
    _of_columns(past, 8, of="pregen|brought|tok:other|v:1")
    history, reason = past.find(**_asked())
    assert reason is None
    told = [one["scores"]["cider_d"] for one in history["evaluations"]]
    assert told == [at / 10 for at in reversed(range(8))]
    assert history["evaluations"][0]["run"] == "run=1"
    assert {one["architecture"] for one in history["evaluations"]} == {"columns"}
    assert len(past.find()[0]["evaluations"]) == 8  # a checkpoint's is of checkpoints


def test_words_and_pieces_of_columns_have_forecasts_of_their_own(past):
    past.brought(MINE, tokenizer="karpathy", pieces="bpe")
    for at in range(8):
        _of_columns(past, at, of="pregen|brought|tok:karpathy|units:words|v:1")
    assert past.find(**_asked())[0] is not None
    reason = past.find(**_asked(units="pieces"))[1].none_because
    assert reason.startswith("this split has 0 finished evaluations of other columns")
    for at in range(8):
        of, asked = "pregen|brought|tok:bpe|units:pieces|v:1", {"units": "pieces"}
        _of_columns(past, at, of=of, request=asked)
    for units in ("pieces", "words"):
        assert past.find(**_asked(units=units))[0] is not None


def test_columns_without_labels_are_of_one_run(past):
    past.brought(MINE)
    for at in range(8):
        past.ended(columns=f"sha256:{at:064}", of="pregen|brought|tok:own|v:1")
    assert "one training run" in past.find(**_asked())[1].none_because


FORECAST = {"value": 0.4, "interval": [0.3, 0.5], "none_because": None, "card": None}
NONE = {"value": None, "interval": None, "none_because": "not enough evidence", "card": None}


def _row(**metrics):
    return {
        "name": "forecast",
        "kind": "forecast",
        "status": "done",
        "summary": json.dumps({"forecast": metrics}),
    }


def test_a_forecast_is_shown_by_metric_once_its_task_is_done():
    waiting = {**_row(), "status": "waiting", "summary": None}
    assert evaluations.show_forecast([waiting], StoredEvaluation()) is None
    assert evaluations.show_forecast([], StoredEvaluation()) is None
    found = evaluations.show_forecast([_row(cider_d=FORECAST, spice=NONE)], StoredEvaluation())
    assert found["cider_d"].value == 0.4
    assert found["spice"].none_because == "not enough evidence"


def test_where_no_metric_has_a_forecast_it_is_said_why():
    found = evaluations.show_forecast([_row(cider_d=NONE, spice=NONE)], StoredEvaluation())
    assert isinstance(found, NoForecast)
    assert found.none_because == "not enough evidence"
    other = {**NONE, "none_because": "it is constant"}
    rows = [_row(bleu_1=NONE, cider_d=NONE, spice=other)]
    told = evaluations.show_forecast(rows, StoredEvaluation()).none_because
    assert told == "bleu_1, cider_d: not enough evidence; spice: it is constant"
    assert set(found.metrics) == {"cider_d", "spice"}
    kept = evaluations.show_forecast(
        [], StoredEvaluation(forecast=MissingForecast(none_because="too few"))
    )
    assert kept == NoForecast(none_because="too few", metrics={})
