"""The journal of a step: everything that srun must see, in order, in one file.

Only the step's supervisor writes it. A reader continues at any offset that was the end of a frame,
so neither a daemon nor a client that starts again loses or repeats output. Each frame is a letter,
a task and a length (4 bytes each, big-endian), and data:

    o, e  output and error of the task
    m     a line for srun's own standard error
    x     the task ended: its wait status, as a number
    z     the step is over, the last frame: JSON, see odcd.runner.steps.supervisor

The owner of the step acknowledges what it has printed. That part of the file is released, and
while the rest is too large, the tasks' output is not read. The more steps a user has, the less of
each is kept, so all of them together use a few gigabytes of the disk of odc's home at most.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct

from odcd.runner.spool import lacks_space

HEAD = struct.Struct(">cII")
OUT, ERR, MESSAGE, EXITED, OVER = b"o", b"e", b"m", b"x", b"z"
MAX_BEHIND_BYTES = 16 * 1024 * 1024
MIN_BEHIND_BYTES = 2 * 1024 * 1024
"""More than a MiB, after which clients acknowledge; all that is kept on an almost full disk."""
USER_BYTES = 1024 * 1024 * 1024
"""Divided among the running steps of a user, as far as each gets at least MIN_BEHIND_BYTES."""
_LOOK_BYTES = 256 * 1024
_PUNCH_BYTES = 1024 * 1024
_BLOCK = 4096
_PUNCH_HOLE, _KEEP_SIZE = 2, 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def behind_bytes(steps: int) -> int:
    """How far the client of a step may be behind, if it is one of so many of its user."""
    return max(MIN_BEHIND_BYTES, min(MAX_BEHIND_BYTES, USER_BYTES // max(1, steps)))


class Journal:
    def __init__(self, path: str, behind: int = MAX_BEHIND_BYTES) -> None:
        """behind: how much is kept that the owner has not acknowledged. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        self._folder = os.path.dirname(path)
        self._behind = behind
        self._scarce = False
        self._until_look = 0
        self.size = 0
        self.acknowledged = 0
        self._released = 0
        self.broken: str | None = None
        """Why frames are no longer kept; None: all were."""

    @property
    def is_full(self) -> bool:
        return self.size - self.acknowledged > (MIN_BEHIND_BYTES if self._scarce else self._behind)

    def add(self, kind: bytes, task: int, data: bytes) -> None:
        """Never fails: a full disk loses output, but not the step."""
        frame = HEAD.pack(kind, task, len(data)) + data
        if self.broken is not None and kind not in (EXITED, OVER):
            return
        written = 0
        try:
            while written < len(frame):
                written += os.write(self._fd, frame[written:])
        except OSError as error:
            self.broken = error.strerror or str(error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self.size)
            return
        self.size += len(frame)
        self._until_look -= len(frame)
        if self._until_look <= 0 or self._scarce:
            self._until_look = _LOOK_BYTES
            self._scarce = lacks_space(self._folder)

    def acknowledge(self, offset: int) -> None:
        """The owner has everything before this offset."""
        self.acknowledged = max(self.acknowledged, min(offset, self.size))
        end = self.acknowledged // _BLOCK * _BLOCK
        if end - self._released >= _PUNCH_BYTES:
            _libc.fallocate(
                self._fd, _PUNCH_HOLE | _KEEP_SIZE, self._released, end - self._released
            )
            self._released = end
