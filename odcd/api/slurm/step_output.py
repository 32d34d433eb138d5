"""The frames of a step's journal as frames for srun, with or without labels."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import msgspec

from odcd.api.slurm.remote import frame
from odcd.errors import WrongState
from odcd.runner.steps.journal import ERR, EXITED, HEAD, MESSAGE, OUT, OVER

MAX_PARTIAL_BYTES = 65536
"""A longer line is printed in parts."""
MAX_PARTIALS_BYTES = 128 * 1024
"""The same for the lines of all tasks that have not ended yet: they are in every position."""
MAX_OFFSET = 2**62
_PARTIAL = re.compile(r"[oe][0-9]{1,9}")
_MARK = re.compile(r"[oemx][0-9]{1,9}")


class _Position(msgspec.Struct, frozen=True):
    at: Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]
    partial: dict[str, str] = {}
    marks: dict[str, Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]] = {}


_Moment = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
_Status = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,5}$")]
_Numbers = Annotated[str, msgspec.Meta(pattern="^[0-9,-]+$")]
_Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
_Used = Annotated[list[_Amount], msgspec.Meta(min_length=5, max_length=5)]


class _End(msgspec.Struct, frozen=True):
    """See odcd.runner.steps.supervisor. A client may continue anywhere in the journal, so what is
    read there may be what a task has printed."""

    e: Literal["ended"]
    state: Literal["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"]
    code: Annotated[int, msgspec.Meta(ge=0, le=255)]
    started_at: _Moment
    at: _Moment
    statuses: dict[_Status, _Numbers] = {}
    used: _Used | None = None
    broken: str | None = None


_DECODER = msgspec.json.Decoder(_Position)
_END = msgspec.json.Decoder(_End)


class StepOutput:
    """Its position goes to the client with each piece. A client that comes back sends it, so that
    nothing is lost or printed twice."""

    def __init__(
        self, tasks: int, *, label: bool, position: str | None = None, has_marks: bool = False
    ) -> None:
        """position: of an earlier session; has_marks: see odcd.executor.base.StepStream. Raises
        ValueError if it is not one."""
        self._label = label
        self._width = len(str(max(0, tasks - 1)))
        self.offset = 0
        self.marks: dict[str, int] = {}
        self._has_marks = has_marks
        self._partial: dict[str, str] = {}
        """Lines that have not ended yet, by stream and task; only with labels."""
        self._partials_size = 0
        if position is not None:
            try:
                before = _DECODER.decode(position)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ValueError(str(error)) from None
            self.offset, self._partial, self.marks = before.at, before.partial, before.marks
            if not all(_PARTIAL.fullmatch(key) for key in self._partial):
                raise ValueError("a line of no task")
            if not all(_MARK.fullmatch(key) for key in self.marks):
                raise ValueError("a mark of no task")
            # Each is looked at for every piece of output.
            if len(self._partial) > 2 * tasks or len(self.marks) > 4 * tasks:
                raise ValueError("more tasks than the step has")
            for text in self._partial.values():
                text.encode("latin-1")
            self._partials_size = sum(map(len, self._partial.values()))
            if self._partials_size > MAX_PARTIALS_BYTES:
                raise ValueError("lines that no step keeps")

    @property
    def position(self) -> str:
        state: dict[str, Any] = {"at": self.offset}
        if self._partial:
            state["partial"] = self._partial
        if self.marks:
            state["marks"] = self.marks
        text = json.dumps(state)
        # The only character that JSON leaves as it is and that no request may have.
        return text.replace("\x7f", "\\u007f")

    def convert(
        self, frames: list[tuple[bytes, int, bytes]]
    ) -> tuple[bytes, dict[str, Any] | None]:
        """The frames for the client, and how the step ended, if it did. Raises WrongState."""
        parts: list[bytes] = []
        for kind, task, data in frames:
            if kind == OVER:
                self._flush(parts)
                return b"".join(parts), _end(data)
            self.offset += HEAD.size + len(data)
            if self._has_marks:
                mark = f"{kind.decode()}{task}"
                self.marks[mark] = self.marks.get(mark, 0) + len(data)
            if kind == EXITED:
                parts.append(frame(b"d", str(task).encode()))
            elif kind == MESSAGE:
                parts.append(frame(b"e", data))
            elif kind in (OUT, ERR):
                stream = b"o" if kind == OUT else b"e"
                parts.append(frame(stream, self._labelled(stream, task, data)))
        parts.append(frame(b"p", self.position.encode()))
        return b"".join(parts), None

    def _labelled(self, stream: bytes, task: int, data: bytes) -> bytes:
        if not self._label:
            return data
        key = f"{stream.decode()}{task}"
        before = self._partial.pop(key, "").encode("latin-1")
        self._partials_size -= len(before)
        *lines, rest = (before + data).split(b"\n")
        if len(rest) > MAX_PARTIAL_BYTES or len(rest) + self._partials_size > MAX_PARTIALS_BYTES:
            lines.append(rest)
            rest = b""
        if rest:
            self._partial[key] = rest.decode("latin-1")
            self._partials_size += len(rest)
        label = f"{task:>{self._width}}: ".encode()
        return b"".join(label + line + b"\n" for line in lines)

    def _flush(self, parts: list[bytes]) -> None:
        """The step is over: print the lines without an end."""
        for key, text in self._partial.items():
            line = f"{int(key[1:]):>{self._width}}: ".encode() + text.encode("latin-1") + b"\n"
            parts.append(frame(key[0].encode(), line))
        self._partial.clear()
        self._partials_size = 0


def _end(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.structs.asdict(_END.decode(data))
    except (msgspec.MsgspecError, RecursionError):
        raise WrongState("the output of the step cannot be read") from None
