"""Time of the processor that a block may take."""

import time

import pytest

from service.kernel import process_limits


class _Late(Exception):
    pass


def _compute(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_what_takes_too_long_is_ended():
    with process_limits.end_after(0.1, _Late()):
        _compute(0.02)
    _compute(0.1)
    with pytest.raises(_Late), process_limits.end_after(0.1, _Late()):
        _compute(5.0)


def _compute_in_vain():
    with pytest.raises(_Late, match="inner"), process_limits.end_after(0.1, _Late("inner")):
        _compute(5.0)
    _compute(5.0)


def test_one_limit_within_another_does_not_lift_it():
    with pytest.raises(_Late, match="outer"), process_limits.end_after(0.3, _Late("outer")):
        _compute_in_vain()


def _compute_whatever_comes():
    try:
        _compute(5.0)
    except _Late:
        _compute(5.0)


def test_what_catches_all_errors_is_ended_too():
    with pytest.raises(_Late), process_limits.end_after(0.1, _Late()):
        _compute_whatever_comes()
