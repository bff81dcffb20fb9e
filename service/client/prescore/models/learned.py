"""Trainings of the learned metric."""

from typing import Any, ClassVar

from pydantic import Field

from prescore.models.base import Answer
from prescore.models.runs import Oddity, Run


class ModelCard(Answer):
    """A trained metric; `kendall_c` on the data that stopped the training, and on test data."""

    features: dict[str, str] = Field(default_factory=dict)
    tokenizer: str = ""
    learner: str = ""
    recipe: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    stopped_by: str = ""
    epochs: int = 0
    best_epoch: int = 0
    kendall_c: dict[str, tuple[float | None, float | None]] = Field(default_factory=dict)


class Learned(Run):
    PLACE: ClassVar[str] = "/v1/learned"

    metric: str | None = None  # its name in requests; None until it is trained
    model: ModelCard | None = None
    warnings: tuple[Oddity, ...] = ()

    def below(self) -> tuple[str, ...]:
        return ("model",)

    def facts(self) -> tuple[object, ...]:
        return *super().facts(), self.metric or ""
