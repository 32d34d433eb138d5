"""Reads a container's log with the times of its lines, so that reading can continue after an
interruption where it stopped, also if kubelet has rotated the log meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_STAMPED = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{1,20}) ", re.MULTILINE)
MAX_STAMP = 40
DISORDER = timedelta(seconds=1)
"""Lines of standard output and error may be stored in another order than that of their times."""
MAX_HELD_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Position:
    """The last line that was read: its time as kubelet writes it, how many bytes of it were read,
    and which of the lines with this time it is."""

    stamp: str
    line_bytes: int
    number: int = 1

    @classmethod
    def parse(cls, text: str) -> Position:
        stamp, size, *number = text.split(" ")
        return cls(stamp, int(size), *map(int, number))

    def __str__(self) -> str:
        return f"{self.stamp} {self.line_bytes} {self.number}"

    @property
    def at(self) -> datetime:
        return _moment(self.stamp)

    @property
    def since(self) -> str:
        """For kubelet's sinceTime, in whole seconds. A later line may have an earlier time."""
        return f"{(self.at - DISORDER).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


class LogLines:
    """Turns pieces of a log with times into the output alone."""

    def __init__(self, after: Position | None = None) -> None:
        """after: the part up to there was read before, and is left out."""
        self.position = after
        self._seeking = after
        self._passed = 0
        """Lines with the time that is sought, before the one that is sought."""
        self._carry = b""
        """The beginning of a line whose time is not complete."""
        self._in_line = False
        self._held: list[bytes] = []
        """Lines later than the position, as long as the position was not found."""
        self._held_bytes = 0

    def feed(self, piece: bytes) -> bytes:
        """The output in the next piece."""
        data = self._carry + piece
        self._carry = b""
        if self._seeking is not None:
            return self._seek(data)
        return self._strip(data)

    def end(self) -> bytes:
        """The output that is left when the log ends."""
        data, self._carry = self._carry, b""
        if self._seeking is None:
            return data
        found = _STAMPED.match(data)
        if found and self._is_sought(found[1]):
            # The log ends in the line that was read before.
            rest = data[found.end() + self._seeking.line_bytes :]
            self._seeking = None
            return rest
        if data:
            self._hold(data)
        return self._give_up()

    def _strip(self, data: bytes) -> bytes:
        text = b""
        if self._in_line:
            cut = data.find(b"\n") + 1
            if not cut:
                self._count(len(data))
                return data
            text, data = data[:cut], data[cut:]
            self._count(cut)
            self._in_line = False
        whole = data.rfind(b"\n") + 1
        rest = data[whole:]
        if rest and (b" " in rest[:MAX_STAMP] or len(rest) >= MAX_STAMP):
            self._in_line, whole = True, len(data)
        else:
            self._carry = rest
        lines = data[:whole]
        if lines:
            self._place(lines)
        return text + _STAMPED.sub(b"", lines)

    def _place(self, lines: bytes) -> None:
        """Note the last line."""
        begin = lines.rfind(b"\n", 0, len(lines) - 1) + 1
        found = _STAMPED.match(lines[begin:])
        if not found:
            return
        stamp, number, size = found[1].decode(), 1, len(lines) - begin - found.end()
        while begin:
            begin = lines.rfind(b"\n", 0, begin - 1) + 1
            if not lines.startswith(found[0], begin):
                break
            number += 1
        else:
            if self.position is not None and self.position.stamp == stamp:
                number += self.position.number
        self.position = Position(stamp, size, number)

    def _count(self, more: int) -> None:
        if (at := self.position) is not None:
            self.position = Position(at.stamp, at.line_bytes + more, at.number)

    def _is_sought(self, stamp: bytes) -> bool:
        """Whether the line at this time is the one that is sought. Called once for each line."""
        sought = self._seeking
        if sought is None or stamp.decode() != sought.stamp:
            return False
        self._passed += 1
        return self._passed >= sought.number

    def _seek(self, data: bytes) -> bytes:
        """Leave out what was read before: all up to the line at the position."""
        sought = self._seeking
        assert sought is not None
        latest = sought.at + DISORDER
        begin = 0
        for line in _whole_lines(data):
            begin += len(line)
            found = _STAMPED.match(line)
            stamp = found[1].decode() if found else ""
            if found and self._is_sought(found[1]):
                self._seeking, self._held = None, []
                rest = line[found.end() + sought.line_bytes :]
                self.position = Position(stamp, len(line) - found.end(), sought.number)
                return rest + self._strip(data[begin:])
            if self._held or (found and _moment(stamp) > sought.at):
                self._hold(line)
            late = found is not None and _moment(stamp) > latest
            if late or self._held_bytes > MAX_HELD_BYTES:
                return self._give_up() + self._strip(data[begin:])
        self._carry = data[begin:]
        return b""

    def _hold(self, line: bytes) -> None:
        self._held.append(line)
        self._held_bytes += len(line)

    def _give_up(self) -> bytes:
        """The position is no longer in the log: kubelet has rotated it. The lines held are new."""
        sought, held = self._seeking, b"".join(self._held)
        assert sought is not None
        self._seeking, self._held, self._held_bytes = None, [], 0
        if not held:
            return b""
        found = _STAMPED.match(held)
        until = f"{_moment(found[1].decode()):%H:%M:%S}" if found else "now"
        gap = (
            f"\n[odc: output of {sought.at:%Y-%m-%d %H:%M:%S} to {until} UTC may be missing here: "
            "the log was rotated while odc could not read it]\n"
        )
        return gap.encode() + self._strip(held)


def _whole_lines(data: bytes) -> Iterator[bytes]:
    begin = 0
    while end := data.find(b"\n", begin) + 1:
        yield data[begin:end]
        begin = end


def _moment(stamp: str) -> datetime:
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
