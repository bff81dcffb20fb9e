import pytest

from workers.bench.probing.health import ProbedMetricHealth, derive_health
from workers.bench.probing.scoring import ProbeTableRow

ROWS = [
    ProbeTableRow("human", "RvR", scores={"bleu_4": 0.2, "cider_d": 0.8}),
    ProbeTableRow("human", "SvR", scores={"bleu_4": 0.3, "cider_d": 1.0}),
    ProbeTableRow("rare", "R1 unchanged", scores={"bleu_4": 0.21, "cider_d": 0.9}),
    ProbeTableRow("rare", "T = 30", scores={}, drop={"bleu_4": 0.002, "cider_d": 0.04}),
    ProbeTableRow("rare", "T = 5", scores={}, drop={"bleu_4": 0.001, "cider_d": 0.01}),
    ProbeTableRow("single", "single sentence", scores={"bleu_4": 0.12, "cider_d": 0.1}),
    ProbeTableRow("single", "single sentence, as RvR", scores={"bleu_4": 0.1, "cider_d": 0.08}),
]


def test_a_metric_s_health_follows_from_the_probes_rows():
    found = derive_health(ROWS)
    assert list(found) == ["bleu_4", "cider_d"]
    assert found["bleu_4"] == ProbedMetricHealth(
        0.2, 0.2, 0.12, 0.12, pytest.approx(0.5), pytest.approx(0.01)
    )
    assert found["cider_d"] == ProbedMetricHealth(  # its range ends at 10
        0.8, pytest.approx(0.08), 0.1, pytest.approx(0.01), pytest.approx(0.1), pytest.approx(0.05)
    )


def test_what_was_not_asked_or_has_no_answer_is_not_there():
    assert derive_health([]) == {}
    assert derive_health([ProbeTableRow("human", "RvR", reason="no images")]) == {}
    found = derive_health([ProbeTableRow("rare", "R1 unchanged", scores={"bleu_4": 0.2})])
    assert found == {"bleu_4": ProbedMetricHealth(None, None, None, None, None, None)}
    nothing = [ProbeTableRow("human", "RvR", scores={"cider_d": 0.0}), *ROWS[3:]]
    assert derive_health(nothing)["cider_d"].constant_of_human is None
    assert derive_health(nothing)["cider_d"].human_of_range == 0.0


def test_a_range_without_end_and_a_distance_have_no_shares():
    rows = [
        ProbeTableRow("human", "RvR", scores={"bertscore": 0.5, "wmd_distance": 1.0}),
        ProbeTableRow("single", "single sentence", scores={"bertscore": 0.2, "wmd_distance": 2.0}),
        ProbeTableRow(
            "single", "single sentence, as RvR", scores={"bertscore": 0.1, "wmd_distance": 3.0}
        ),
    ]
    assert derive_health(rows) == {
        "bertscore": ProbedMetricHealth(0.5, None, 0.2, None, pytest.approx(0.2), None),
        "wmd_distance": ProbedMetricHealth(1.0, None, 2.0, None, None, None),
    }


def test_references_without_rare_words_do_not_say_what_is_lost_with_them():
    said = {"scores": {"bleu_4": 0.21}, "drop": {"bleu_4": 0.0}}
    human = ProbeTableRow("human", "RvR", scores={"bleu_4": 0.2})
    for share, lost in ((0.0, None), (0.01, 0.0)):
        found = derive_health([human, ProbeTableRow("rare", "T = 30", share=share, **said)])
        assert found["bleu_4"].rare_of_human == lost
