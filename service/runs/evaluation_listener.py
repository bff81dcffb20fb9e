"""Listener of the engine for evaluations: early verdicts, and scores on boards.

A process that changes runs adds it: the service, its janitor, and each worker.
"""

from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from service.contract.results import StoredEvaluation, TaskRow
from service.engine import history, summaries
from service.runs import board_entries, training_falls, verdicts


class EvaluationListener:
    def may_end(
        self, connection: Connection, request: str, rows: Sequence[MutableMapping[str, Any]]
    ) -> bool:
        """Tell whether a request has `until: verdict` and every gate is decided."""
        evaluation = StoredEvaluation.model_validate_json(request)
        if evaluation.until != "verdict":
            return False
        summaries.fill_summaries(connection, rows)
        return verdicts.decide_gates(rows, evaluation)[1] is not None

    def enter_end(
        self, connection: Connection, identity: str, rows: Sequence[TaskRow]
    ) -> Collection[str]:
        """Enter the scores of an ended evaluation on boards, and the falls of its training; returns
        its metrics' full names.
        """
        entered = board_entries.enter_scores(connection, identity, rows)
        training_falls.settle_groups(connection, identity)
        return entered


_LISTENER = EvaluationListener()


def listen_to_engine() -> None:
    """Let evaluations hear of the engine's runs in this process, once or again."""
    history.add_listener(_LISTENER)
