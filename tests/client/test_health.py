"""`prescore health`: what its shares are of, and why one is not known."""

import pytest

from prescore.cli import health
from prescore.models import MetricHealth, Probes

NONE = "no first caption has a word that training captions have fewer than 30 times"
KNOWN = {"human": 0.8, "constant": 0.6, "constant_of_human": 0.7}


def _lines(rows, rare=None):
    said = {
        "id": "pb_1",
        "status": "succeeded",
        "dataset": {"name": "x"},
        "probes": {"rare": [{"probe": "rare", **row} for row in rows]},
        "health": {"cider_d": {**KNOWN, "rare_of_human": rare}},
    }
    return health.format_health(Probes.model_validate(said))


def test_the_constant_s_share_is_not_the_quotient_of_what_stands_beside_it_and_it_is_said():
    told = _lines([])
    assert told[2].split() == ["cider_d", "0.8000", "0.6000", "70%", "-"]
    assert told[3].startswith("of people: the sentence by the references of people's captions")
    one = MetricHealth.model_validate(KNOWN)
    assert health.describe_health(one).endswith("70% of people by the same references")


@pytest.mark.parametrize(
    ("rows", "rare", "told"),
    [
        ([{"name": "R1 unchanged"}, {"name": "T = 30", "note": NONE}], None, NONE),
        (
            [{"name": "R1 unchanged", "reason": "no training captions"}],
            None,
            "no training captions",
        ),
        ([{"name": "R1 unchanged"}, {"name": "T = 30", "note": NONE}], 0.1, None),
        (
            [{"name": "R1 unchanged"}, {"name": "T = 30"}, {"name": "T = 5", "note": "x"}],
            None,
            None,
        ),
        ([], None, None),
    ],
)
def test_where_nothing_is_known_of_rare_words_the_probe_says_why(rows, rare, told):
    expected = [] if told is None else [f"lost with rare words: {told}"]
    assert _lines(rows, rare)[4:] == expected
