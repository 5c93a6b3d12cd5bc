from __future__ import annotations

import os
import signal
from threading import Thread

import pytest

from spandet.training.loop import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_recorded(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as interruption:
        assert interruption.signal == 0
        os.kill(os.getpid(), number)
        assert interruption.signal == number

    assert signal.getsignal(number) == before


def test_a_second_signal_interrupts_immediately() -> None:
    with StopRequest(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_training_works_outside_the_main_thread() -> None:
    seen: list[int] = []

    def work() -> None:
        with StopRequest() as interruption:
            seen.append(interruption.signal)

    thread = Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [0]
