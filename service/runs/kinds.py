"""The kinds of runs that there are. A new kind is a row here, and a module beside this one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from service.contract.api.learned import LearnedIn
from service.contract.api.requests import ComparisonIn, EvaluationIn, ProbesIn
from service.contract.api.studies import StudyIn
from service.runs import comparisons, evaluations, probes, studies, submissions, training
from service.runs.base import AnyKind, Run
from service.works.parts import Parts


@dataclass(frozen=True)
class Offered:
    """`begin` checks a request and plans its run; `labelled`: requests may have labels."""

    kind: AnyKind
    request: type[BaseModel]
    begin: Callable[[Parts, Any], Run]
    labelled: bool = False


KINDS: dict[str, Offered] = {
    "evaluation": Offered(evaluations.KIND, EvaluationIn, submissions.begin, labelled=True),
    "comparison": Offered(comparisons.KIND, ComparisonIn, comparisons.begin),
    "probes": Offered(probes.KIND, ProbesIn, probes.begin),
    "training": Offered(training.KIND, LearnedIn, training.begin),
    "study": Offered(studies.KIND, StudyIn, studies.begin),
}
