"""The progress display, which is on stderr and in terminals only."""

from __future__ import annotations

import io
import sys

import pytest

from spandet.rendering.progress import ProgressDisplay, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_on(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_documents_are_passed_on_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_on(monkeypatch)
    assert list(show_progress(range(3), "predicting", total=1005, done=1000)) == [0, 1, 2]

    shown = terminal.getvalue()
    for wanted in ("predicting", "1,003 of 1,005 documents", "/s", "left:"):
        assert wanted in shown


def test_an_unknown_total_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_on(monkeypatch)
    assert list(show_progress("ab", "counting")) == ["a", "b"]

    assert "2 documents" in terminal.getvalue()
    assert "left:" not in terminal.getvalue()


def test_a_file_gets_notes_only(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay() as display:
        display.start("timing", total=2)
        display.update()
        display.note("[a] note")

    assert capsys.readouterr() == ("", "[a] note\n")
