"""Options of a request that decide how a model's probabilities are computed."""

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

    def for_columns(self) -> dict[str, Any]:
        """Parameters of the task that computes columns."""
        return self.model_dump(exclude_defaults=True)

    def for_prefix(self) -> dict[str, Any]:
        """Parameters of the task that ranks first words: ranks are those of fp32."""
        return self.model_dump(exclude_defaults=True, exclude={"precision"})

    def for_metadata(self) -> dict[str, str]:
        """Metadata of the columns' file; whether they have units is known when they are there."""
        unusual = {**self.for_columns(), "precision": self.precision}
        return {name: str(value) for name, value in unusual.items() if name != "units"}

    def sign(self) -> str:
        """Sign the columns of a model; what the model is adds to it."""
        return f"columns|{self.precision}"

    def describe(self) -> str:
        """Describe the precision, and all that is unusual, for people."""
        told = {"precision": self.precision, **self.for_columns()}
        return ", ".join(map(str, told.values()))


USUAL_OPTIONS = ColumnOptions()
