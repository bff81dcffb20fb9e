import math

import pytest

from service import details


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
def test_a_probability_that_json_cannot_write_is_none(value):
    """A model may give a word no probability at all: its logarithm is minus infinity."""
    assert details._finite(value) is None
    assert details._finite(-0.5) == -0.5
