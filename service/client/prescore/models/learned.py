"""Trainings of learned metrics."""

from typing import Any, ClassVar

from pydantic import Field

from prescore.models.base import Answer
from prescore.models.runs import Oddity, Run


class Agreement(Answer):
    """Of one metric, with people on photos that were not learned from; None: no such judgements."""

    kendall_c: float | None = None
    kendall_c_interval: tuple[float, float] | None = None
    right: float | None = None  # the share of pairs
    right_interval: tuple[float, float] | None = None


class Tested(Answer):
    """Agreement with people of `this model`, of the shipped `accord` and of `cider_d`."""

    photos: int = 0
    rated: int = 0
    pairs: int = 0
    metrics: dict[str, Agreement] = Field(default_factory=dict)


class ModelCard(Answer):
    """A trained metric. Of nneval: `features`, `stopped_by`, epochs, and `kendall_c` on the data
    that stopped the training, and on test data. Of accord: `weights` of features, the share of the
    contrasts learned from that it puts `right`, and its `agreement` with people. `training`: the
    data.
    """

    objective: str = "people"
    features: dict[str, str] = Field(default_factory=dict)
    weights: dict[str, float] = Field(default_factory=dict)
    stems: str = ""
    right: dict[str, float] = Field(default_factory=dict)
    agreement: Tested | None = None
    tokenizer: str = ""
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
