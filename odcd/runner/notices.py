"""Show a notice to a job's user: in a file of the home folder, and on the job's terminal.

A fork with the user's ids does all of it. So whatever is in the home, including links to files of
others, it can only do what the owner could do.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from odcd.runner import socket_paths, terminal
from odcd.runner.helper import Helper, Watch, fork_as
from odcd.runner.loop import Loop
from odcd.runner.members import Member

MAX_NAME_BYTES = 255
MAX_TEXT_BYTES = 64 * 1024
MAX_WALL_BYTES = 16 * 1024
ANSWER_S = 10.0
"""A home that takes longer is reported as not answering, and the write is abandoned."""
SHOW_S = 3.0
MAX_TROUBLES = 5
"""At most this many failures are reported."""


class Notice(NamedTuple):
    """See odcd.records.dispatch.Notice."""

    name: str | None
    text: str
    remove: list[str]
    wall: str | None

    @classmethod
    def of(cls, request: dict[str, Any]) -> Notice:
        """Raises KeyError, TypeError or ValueError when a field is missing or out of bounds."""
        notice = cls(request["name"], request["text"], list(request["remove"]), request["wall"])
        for name in notice.names:
            check_name(name)
        if len(notice.text.encode()) > MAX_TEXT_BYTES:
            raise ValueError(f"the notice has more than {MAX_TEXT_BYTES} bytes")
        if len((notice.wall or "").encode()) > MAX_WALL_BYTES:
            raise ValueError(f"the text to show has more than {MAX_WALL_BYTES} bytes")
        return notice

    @property
    def names(self) -> list[str]:
        return self.remove if self.name is None else [self.name, *self.remove]


def check_name(name: str) -> None:
    """Raises ValueError unless the name is that of a file in one folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"not a file name: {name!r}")
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise ValueError(f"a file name has at most {MAX_NAME_BYTES} bytes: {name!r}")


def deliver(
    loop: Loop,
    notice: Notice,
    member: Member,
    screen: str | None,
    done: Callable[[dict[str, Any]], None],
    *,
    switch_user: bool,
) -> None:
    """Deliver the notice, and call done once with {"shown", "kept", "trouble": [text]}.

    screen: the socket of the member's terminal. shown, kept: whether the text was shown, and
    whether the work in the home was done, if there was any. Raises OSError when no process can be
    forked.
    """
    terminal_socket = _connect(screen) if notice.wall is not None and screen else None

    def work(channel: socket.socket) -> None:
        if notice.wall is not None:
            _report(channel, _show(terminal_socket, notice.wall))
        if notice.names:
            _report(channel, _keep(member, notice))

    try:
        helper = fork_as(
            member.uid, member.gid, work, switch_user=switch_user,
            keep=[terminal_socket] if terminal_socket else [],
        )  # fmt: skip
    finally:
        if terminal_socket:
            terminal_socket.close()
    _Delivery(loop, helper, (notice.wall is not None) + bool(notice.names), done)


class _Delivery:
    """The wait for the reports of the helper that delivers a notice."""

    def __init__(
        self, loop: Loop, helper: Helper, parts: int, done: Callable[[dict[str, Any]], None]
    ) -> None:
        """parts: how many reports the helper sends before it ends."""
        self._missing_parts = parts
        self._done = done
        self._result: dict[str, Any] = {"shown": False, "kept": False, "trouble": list[str]()}
        self._watch = Watch(loop, helper, ANSWER_S, self._receive, self._end_late)

    def _receive(self, channel: socket.socket) -> None:
        try:
            data = channel.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._missing_parts -= 1
            part = json.loads(data)
            self._result["trouble"] += part.pop("trouble", [])
            self._result.update(part)
        elif self._missing_parts > 0:
            self._end("the process that should have delivered it died")
        else:
            self._end()

    def _end_late(self) -> None:
        self._end(f"no answer from the home folder within {ANSWER_S:g} s")

    def _end(self, *trouble: str) -> None:
        self._watch.close()
        self._result["trouble"] += trouble
        self._done(self._result)


def _connect(screen: str) -> socket.socket | None:
    """Connect as the runner, because no one else can reach the socket. None: there is no terminal,
    or it accepts no connection now."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        socket_paths.connect(sock, screen)
    except OSError:
        sock.close()
        return None
    return sock


def _report(channel: socket.socket, part: dict[str, Any]) -> None:
    channel.send(json.dumps(part).encode())


def _show(terminal_socket: socket.socket | None, wall: str) -> dict[str, Any]:
    if terminal_socket is None:
        return {"trouble": ["there is no terminal to show it on"]}
    deadline = time.monotonic() + SHOW_S
    received = bytearray()
    try:
        terminal_socket.settimeout(SHOW_S)
        terminal_socket.sendall(terminal.frame(terminal.WALL, wall.encode()))
        while time.monotonic() < deadline and (data := terminal_socket.recv(65536)):
            received += data
            while taken := terminal.take_frame(received):
                if taken[0] == terminal.WALL:
                    return {"shown": True}
    except OSError:
        pass
    # A terminal of an older runner does not know this frame.
    return {"trouble": ["its terminal did not accept it; a terminal of an older odc cannot"]}


def _keep(member: Member, notice: Notice) -> dict[str, Any]:
    home = member.home if member.home and member.home.startswith("/") else None
    try:
        home = home or pwd.getpwuid(member.uid).pw_dir
        os.umask(0o022)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except KeyError:
        return {"trouble": [f"uid {member.uid} has no account, so no home folder is known"]}
    except (OSError, ValueError) as error:
        return {"trouble": [f"cannot open the home folder {home}: {_why(error)}"]}
    trouble: list[str] = []
    if notice.name is not None:
        try:
            _put(folder, notice.name, notice.text.encode())
        except OSError as error:
            trouble.append(f"cannot write {home}/{notice.name}: {_why(error)}")
    for name in notice.remove:
        if name == notice.name:
            continue
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            trouble.append(f"cannot remove {home}/{name}: {_why(error)}")
    return {"kept": not trouble, "trouble": [text[:1000] for text in trouble[:MAX_TROUBLES]]}


def _put(folder: int, name: str, content: bytes) -> None:
    """Replace the name with a whole new file. If the name is a link, the link is replaced, not its
    target."""
    made = f".odc-notice-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(made, flags, 0o644, dir_fd=folder)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
