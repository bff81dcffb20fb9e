"""The labels that a team's evaluations have."""

from pydantic import BaseModel, Field

from service.contract.api.texts import Timestamp

MOST = 100  # names, and values of each
LOOKED_AT = 5000  # evaluations, the latest


class LabelValue(BaseModel):
    value: str
    evaluations: int = Field(description=f"Of the latest {LOOKED_AT:,}, those with this label.")
    latest: Timestamp = Field(description="When the latest of them was submitted.")


class LabelOut(BaseModel):
    """A label's name, and its values."""

    name: str = Field(examples=["branch"])
    values: list[LabelValue] = Field(
        max_length=MOST, description="The one of the latest evaluation first."
    )
    more_values: bool = Field(description="There are values that are not shown.")


class LabelsOut(BaseModel):
    items: list[LabelOut] = Field(
        max_length=MOST, description="The name that the latest evaluation has first."
    )
    more_names: bool = Field(description="There are names that are not shown.")
