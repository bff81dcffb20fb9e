import pytest

from workers.bench.judging.verdict_formats import choose_ticks, format_figure


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.41, 0.47, [0.4, 0.42, 0.44, 0.46, 0.48]),
        (-0.12, 0.31, [-0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.5, 0.5, [0.5, 0.5002]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_an_axis_fits_what_stands_on_it(low, high, expected):
    assert choose_ticks(low, high) == pytest.approx(expected)


def test_a_figure_tells_its_p_unless_it_is_small_and_a_missing_one_is_none():
    assert format_figure(0.5, (0.4, 0.6), 0.25) == "0.500 [0.400, 0.600] p=0.25"
    assert format_figure(0.5, (0.4, 0.6), 0.0009, "+") == "+0.500 [0.400, 0.600]"
    assert format_figure(None, None) == "none"
