"""Answers of a service of another version, as a client reads them."""

import pytest
from pydantic import ValidationError

import prescore
from helpers.interface import DOCUMENT
from prescore.models import Checkpoint, Dataset, Evaluation, Learned, ModelCard, RunTask, Webhook
from prescore.models.base import Answer

DATASET = {"name": "shapes", "version": "v1", "digest": "d", "split": "test"}


def _models(model=Answer):
    for each in model.__subclasses__():
        yield each
        yield from _models(each)


def test_a_field_a_status_and_a_family_of_next_year_are_read():
    evaluation = Evaluation.model_validate(
        {
            "id": "ev_1",
            "status": "paused",
            "dataset": {**DATASET, "version": 3, "licence": "CC0"},
            "verdict": "passed_almost",
            "tasks": [{"name": "columns", "status": "moved", "device": "tpu", "error": "why"}],
            "scores": {"taste": {"value": 0.5, "family": "midgen", "colour": "red"}},
            "priority": "bulk",
        }
    )
    assert (evaluation.status, evaluation.ended) == ("paused", False)
    assert (str(evaluation.dataset), evaluation.tasks[0].error.detail) == ("shapes@3/test", "why")
    assert evaluation.verdict == "passed_almost"
    assert evaluation.tasks[0].status == "moved"
    assert evaluation.scores["taste"].family == "midgen"
    assert not hasattr(evaluation, "priority")
    with pytest.raises(ValueError, match="frozen"):
        evaluation.status = "succeeded"


def test_what_a_service_leaves_out_is_null_or_empty():
    evaluation = Evaluation.model_validate({"id": "ev_1", "status": "queued", "dataset": DATASET})
    assert (evaluation.tasks, evaluation.scores, evaluation.error) == ((), {}, None)
    assert (evaluation.created_at, evaluation.finished_at) == (None, None)
    task = RunTask.model_validate({"name": "columns", "status": "ready"})
    assert (task.kind, task.attempts, task.cached, task.progress.total) == ("", 0, False, 0)
    dataset = Dataset.model_validate({"name": "shapes", "version": "v1"})
    assert (dataset.content, dataset.captions, dataset.features) == (None, None, None)
    assert Webhook.model_validate({"id": "wh_1"}).events == ()


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Evaluation, {"id": "ev_1", "status": "queued"}),
        (Evaluation, {"id": "ev_1;rm", "status": "queued", "dataset": DATASET}),
        (Checkpoint, {"bytes": 5}),
        (Checkpoint, {"digest": "../.."}),
        (RunTask, {"name": "columns"}),
    ],
)
def test_without_what_identifies_it_it_is_no_answer(model, fields):
    with pytest.raises(ValidationError):
        model.model_validate(fields)


@pytest.mark.parametrize("odd", [5, {"cider_d": [1]}, [{}]])
def test_an_estimate_of_another_shape_is_left_aside(odd):
    fields = {"id": "ev_1", "status": "running", "dataset": DATASET, "estimate": odd}
    assert Evaluation.model_validate(fields).estimate is None


def test_a_trained_model_is_of_the_kind_whose_facts_it_has():
    run = {"id": "ln_1", "status": "succeeded", "dataset": DATASET}
    nneval = Learned.model_validate({**run, "model": {"features": {"meteor": "s"}, "epochs": 7}})
    accord = Learned.model_validate(
        {**run, "model": {"weights": {"f": 0.5}, "objective": "judged"}}
    )
    assert isinstance(nneval.model, ModelCard)
    assert accord.model.weights == {"f": 0.5}


def test_no_answer_has_an_enumeration_that_is_closed():
    """A value that a later version adds is read; the interface still names those of this one."""
    closed = "\n".join(repr(model.__pydantic_core_schema__) for model in set(_models()))
    assert closed.count("'type': 'literal'") == closed.count("'choices': [{'type': 'literal'")
    status = DOCUMENT["components"]["schemas"]["Evaluation"]["properties"]["status"]
    assert status["enum"] == ["queued", "running", "succeeded", "failed", "canceled"]


def test_every_public_name_is_found_and_a_wrong_one_is_not():
    assert all(getattr(prescore, name) is not None for name in prescore.__all__)
    assert prescore.models.Evaluation is prescore.Evaluation
    with pytest.raises(AttributeError, match="no attribute 'Evaluations'"):
        _ = prescore.Evaluations
