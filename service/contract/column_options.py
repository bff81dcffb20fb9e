"""Options of a request that decide how a model's probabilities are computed."""

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict

from prescore.models.choices import Precision, Units


class ColumnOptions(BaseModel):
    """Options of columns. Each field is a field of the request, with the same default. It is part
    of what makes two evaluations comparable, and, where it is not the default, of the tasks' keys.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True)

    precision: Precision = "fp32"
    units: Units = "words"
    prompt: str | None = None  # None: the checkpoint's own, if it reads one

    def for_columns(self) -> dict[str, Any]:
        """Parameters of the task that computes columns."""
        return self.model_dump(exclude_defaults=True)

    def for_prefix(self) -> dict[str, Any]:
        """Parameters of the task that ranks first words: ranks are those of fp32."""
        return self.model_dump(exclude_defaults=True, exclude={"precision"})

    def for_captions(self) -> dict[str, Any]:
        """Parameters of the task that decodes captions; precision and units are of scores."""
        return self.model_dump(exclude_defaults=True, include={"prompt"})

    def for_metadata(self) -> dict[str, str]:
        """Metadata of the columns' file; whether they have units is known when they are there."""
        unusual = {**self.for_columns(), "precision": self.precision}
        return {name: str(value) for name, value in unusual.items() if name != "units"}

    def sign(self) -> str:
        """Sign the columns of a model; what the model is adds to it."""
        return "|".join(["columns", self.precision, *self._name_prompt()])

    def sign_prefix(self) -> str:
        """Sign the ranks of first words of a model, as `sign` does."""
        return "|".join(["prefix", *self._name_prompt()])

    def describe(self) -> str:
        """Describe the precision, and all that is unusual, for people."""
        others = self.model_dump(exclude_defaults=True, exclude={"precision", "prompt"})
        return ", ".join([self.precision, *map(str, others.values()), *self._name_prompt()])

    def _name_prompt(self) -> list[str]:
        """The field of a signature for a prompt, which may have any signs: a part of its SHA-256;
        none without a prompt.
        """
        if self.prompt is None:
            return []
        return [f"prompt:{hashlib.sha256(self.prompt.encode()).hexdigest()[:16]}"]


USUAL_OPTIONS = ColumnOptions()
