"""What is scored: a checkpoint, captions, or columns with captions or without."""

import pytest
from pydantic import ValidationError

from service.contract.api.evaluations import EvaluationRequest

DIGEST = "sha256:" + "a" * 64
SAID = [{"image": "a.jpg", "caption": "a dog"}]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"checkpoint": DIGEST, "captions": SAID},
        {"checkpoint": DIGEST, "columns": DIGEST},
        {"checkpoint": DIGEST, "columns": DIGEST, "captions": SAID},
    ],
)
def test_a_wrong_number_of_sources_is_told_of_all_three(given):
    with pytest.raises(ValidationError, match="one of `checkpoint`, `captions` and `columns`"):
        EvaluationRequest.model_validate({"dataset": "tiny/test", **given})


@pytest.mark.parametrize("given", [{"columns": DIGEST}, {"columns": DIGEST, "captions": SAID}])
def test_captions_may_stand_beside_columns(given):
    EvaluationRequest.model_validate({"dataset": "tiny/test", **given})
