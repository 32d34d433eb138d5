"""queue --watch shows the queue as it changes, pushed, and writes only what changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from tests.odcctl.objects import a_job, an_event
from tests.odcctl.peer import Peer, Reply, event_stream
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]


def test_a_change_is_pushed_and_only_its_line_is_written(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    changed = threading.Event()

    def events() -> Iterator[bytes]:
        changed.wait(600)
        yield from event_stream([an_event(1, "started")], peer.stopping)

    jobs = [a_job(1, "RUNNING", node_names=["n1"]), a_job(2, reason="Priority"), a_job(3)]
    after = [jobs[0], a_job(2, "RUNNING", node_names=["n2"]), jobs[2]]
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=events()))
    peer.on(
        "GET",
        "/v1/jobs",
        lambda _: Reply({"jobs": after if changed.is_set() else jobs, "next": None}),
    )
    screen = terminal("queue", "--watch")
    shown = screen.until(b"PENDING  -        -        4:00:00\x1b[0K")
    assert shown.count(b"alice") == 3
    assert b"Priority" in shown
    request_count = len(peer.requests_to("/v1/jobs"))
    changed.set()
    shown = screen.until(b" n2")
    assert shown.count(b"alice") == 1
    assert len(peer.requests_to("/v1/jobs")) == request_count + 1
    screen.resize(24, 40)
    shown = screen.until(b"\x1b[6;1H")
    assert b"\xe2\x80\xa6" in shown
    screen.type(b"\x03")
    screen.until(b"\x1b[?1049l")
    assert screen.end() == 130


def test_a_watch_outlives_a_restart_of_the_daemon(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    peer.on("GET", "/v1/events", Reply(pieces=[b": \n\n"], cut=True),
            lambda _: Reply(pieces=event_stream([], peer.stopping)))  # fmt: skip
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(1)], "next": None})
    screen = terminal("queue", "--watch")
    screen.until(b"the daemon does not answer")
    screen.until(b"queue --watch    ")
    screen.type(b"\x03")
    assert screen.end() == 130


def test_a_rejected_request_is_reported_outside_the_screen(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("queue", "--watch", "--output", "quiet")
    shown = screen.until(b"--help\r\n")
    assert b"\x1b[?1049h" not in shown
    assert screen.end() == 2


def test_a_watch_shows_the_columns_that_were_chosen(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream([], peer.stopping)))
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(71)], "next": None})
    screen = terminal("queue", "--watch", "-o", "state,job", "--no-header")
    shown = screen.until(b"PENDING  71")
    assert b"STATE" not in shown
    assert b"alice" not in shown
    screen.type(b"\x03")
    assert screen.end() == 130
    wrong = terminal("queue", "--watch", "-o", "colour")
    assert b"\x1b[?1049h" not in wrong.until(b"--help\r\n")
    assert wrong.end() == 2


def test_a_watch_needs_a_terminal_that_moves_its_cursor(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("queue", "--watch", term="dumb")
    assert b"TERM is dumb" in screen.until(b"printed once.\r\n")
    assert screen.end() == 2
    assert peer.requests == []
