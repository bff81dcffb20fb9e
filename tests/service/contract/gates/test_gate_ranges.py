"""Gates that decide nothing are refused before anything is computed."""

import pytest

from service.contract.errors import InvalidRequest
from service.contract.gates import gates, ranges


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bleu_4 >= 33", "can never pass: bleu_4 is between 0 and 1; did you mean 0.33?"),
        ("bleu_4 <= 33", "always passes: bleu_4 is between 0 and 1; did you mean 0.33?"),
        ("bleu_4 > 1", "can never pass: bleu_4 is between 0 and 1; did you mean 0.01?"),
        ("bleu_4 < 0", "can never pass: bleu_4 is between 0 and 1"),
        ("cider_d >= 90", "can never pass: cider_d is between 0 and 10; did you mean 0.9?"),
        ("caption_length < 0", "can never pass: caption_length is at least 0"),
        (
            "bleu_4 >= baseline - 1",
            "always passes: bleu_4 is between 0 and 1; did you mean baseline - 0.01?",
        ),
        (
            "bleu_4 >= baseline + 2",
            "can never pass: bleu_4 is between 0 and 1; did you mean baseline + 0.02?",
        ),
        ("not_worse(bleu_4, 2)", "always passes: bleu_4 is between 0 and 1; did you mean 2 %?"),
        ("bleu_4 >= 2 * baseline - 2", "always passes: bleu_4 is between 0 and 1"),
    ],
)
def test_a_threshold_that_no_score_or_every_score_meets_is_refused(text, said):
    with pytest.raises(InvalidRequest) as refused:
        ranges.check_gate_range(gates.parse_gate(text))
    assert refused.value.detail == f"{text!r} {said}"


@pytest.mark.parametrize(
    "text",
    [
        "bleu_4 >= 0.33",
        "bleu_4 > 0.999",
        "bleu_4 >= 0",
        "bleu_4 <= 1",
        "perplexity < 0",
        "wmd_distance <= 1e9",
        "caption_length <= baseline + 1e9",
        "bertscore >= -7",
        "bleu_4 >= baseline * 1.02",
        "no_significant_drop(bleu_4)",
        "not_worse(bleu_4, cider_d, 0.1)",
        "not_worse(perplexity, 20)",
        "better(bleu_4)",
    ],
)
def test_what_can_pass_and_fail_or_asks_for_nothing_by_convention_is_taken(text):
    ranges.check_gate_range(gates.parse_gate(text))


def test_every_metric_has_a_gate_that_is_taken_as_every_metric_has_a_range():
    for name in (*gates.catalogue.METRICS, *gates.catalogue.ALIASES):
        gate = gates.parse_gate(f"{name} >= 0")
        assert gate.metrics == (name,)
        ranges.check_gate_range(gate)
