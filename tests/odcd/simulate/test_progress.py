"""The progress of a replay: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import io

import pytest

from odcd.simulate.progress import ReplayProgress


@pytest.fixture(autouse=True)
def a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_and_is_left_clean() -> None:
    stream = Terminal()
    with ReplayProgress("lublin[1]", stream) as progress:
        assert stream.getvalue() == ""
        progress.show(0, 10)
        assert stream.getvalue() == ""
        progress.show(5, 10)
        shown = stream.getvalue()
        assert "lublin[1]" in shown
        assert "50%" in shown
        assert "left" in shown
        progress.show(6, 10)
        assert stream.getvalue() == shown, "drawn at most five times a second"
    assert stream.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")


def test_an_interrupted_replay_leaves_the_cursor_visible() -> None:
    stream = Terminal()

    def replay() -> None:
        with ReplayProgress("a", stream) as progress:
            progress.show(5, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay()
    assert stream.getvalue().rpartition("\x1b[?25")[2].startswith("h")


def test_a_file_gets_nothing() -> None:
    stream = io.StringIO()
    with ReplayProgress("a", stream) as progress:
        progress.show(5, 10)
    assert stream.getvalue() == ""


def test_a_replay_that_ends_at_once_draws_nothing() -> None:
    stream = Terminal()
    with ReplayProgress("a", stream):
        pass
    assert stream.getvalue() == ""


def test_a_terminal_that_cannot_move_its_cursor_gets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with ReplayProgress("a", stream) as progress:
        progress.show(5, 10)
    assert stream.getvalue() == ""
