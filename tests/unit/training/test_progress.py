from __future__ import annotations

import io
import sys

import pytest

from spandet.rendering.tables import duration
from spandet.training.checkpoint import DevScore, EpochRecord
from spandet.training.progress import Screen

RECORD = EpochRecord(
    epoch=2,
    step=20,
    losses={"filter": 0.25, "label": 0.5},
    dev=DevScore(precision=0.5, recall=0.25, f1=1 / 3, threshold=0.4, f1_untuned=0.1),
    sentences_per_second=12.34,
    seconds=3725,
)


def show(screen: Screen) -> None:
    with screen:
        screen.begin_epoch(epoch=1, epochs=3, sentences=10, done=4)
        screen.advance(6, 12.3, {"filter": 0.25, "label": 0.5})
        screen.begin_part("dev", 1)
        screen.advance_part(1)
        screen.end_epoch(RECORD, 3, is_best=True)


def test_a_file_gets_one_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen())

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "epoch 2/3  loss 0.7500 (filter 0.2500, label 0.5000)  12.3 sentences/s  "
        "dev P 50.00 R 25.00 F1 33.33 best  1:02:05\n"
    )


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    show(Screen())

    output = terminal.getvalue()
    for wanted in ("epoch 2/3", "10 of 10", "filter 0.2500", "12.3 sentences/s", "dev", "F1 33.33"):
        assert wanted in output


def test_silent_progress_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen(silent=True))

    assert capsys.readouterr() == ("", "")


def test_brackets_in_a_note_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().note("[training] is a section")

    assert capsys.readouterr().err == "[training] is a section\n"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3600, "1:00:00")]
)
def test_duration(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
