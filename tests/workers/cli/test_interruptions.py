"""Ctrl-C: the signal is real, and comes at a known moment."""

import signal

import pytest

from service.contract.errors import RunCanceled
from workers.cli.console import catch_interrupts


def test_after_ctrl_c_who_is_told_next_ends_the_task():
    with catch_interrupts() as heed:
        heed(0, 2)
        signal.raise_signal(signal.SIGINT)
        for done in (1, 2):
            with pytest.raises(RunCanceled, match="the training was stopped"):
                heed(done, 2)


def test_a_second_ctrl_c_interrupts_at_once():
    with catch_interrupts():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
