"""Run a step of a job: srun without its terminal, for programs of odcctl itself.

The frames are those of odcctl.remote.program and odcctl.remote.interactive. Output is passed on
exactly once, even if the daemon restarts meanwhile.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from odcctl.exits import Failure, Refused, Unreachable
from odcctl.http.client import Client
from odcctl.http.wire import Answer, LostAnswer
from odcctl.remote.program import frames

PATH = "/v1/slurm/srun"
PIECE_BYTES = 384 * 1024
ACKNOWLEDGE_BYTES = 1 << 20
OUTAGE_S = 600.0
PAUSE_S = 0.2
TOO_MANY = 429
MAX_STDERR_BYTES = 64 * 1024


class Ended(NamedTuple):
    code: int
    stderr: str


class Step:
    """source: its input. sink: gets its output."""

    def __init__(
        self, new_client: Callable[[], Client], words: Sequence[str], *,
        source: IO[bytes] | None = None, sink: Callable[[bytes], None] | None = None,
    ) -> None:  # fmt: skip
        self._new_client = new_client
        self._client = new_client()
        self._words = list(words)
        self._source = source
        self._sink = sink
        self._key = os.urandom(16).hex()
        self._position: str | None = None
        self._output: list[bytes] = []
        """Not confirmed by a position: it would arrive again on another connection."""
        self._stderr = bytearray()
        self._acknowledged = 0
        self._path: str | None = None
        self._sender: threading.Thread | None = None
        self._over = threading.Event()
        self._failure: Exception | None = None

    def run(self) -> Ended:
        """Raises Failure: the daemon refuses it, or is away for too long; and what source and sink
        raise, after which the step is ended."""
        heard = time.monotonic()
        try:
            while True:
                try:
                    for kind, content in frames(iter(self._send())):
                        heard = time.monotonic()
                        if kind == b"x":
                            self._pass_on()
                            return Ended(int(content), self._stderr.decode("utf-8", "replace"))
                        self._obey(kind, content)
                        if self._failure is not None:
                            raise self._failure
                    failure: Exception = LostAnswer("the answer ended too early")
                except (LostAnswer, Unreachable, Refused) as error:
                    if isinstance(error, Refused) and not _is_temporary(error):
                        raise
                    failure = error
                self._output.clear()
                if time.monotonic() - heard > OUTAGE_S:
                    raise Unreachable(f"the connection to the daemon was lost: {failure}")
                time.sleep(PAUSE_S)
        except BaseException:
            self._abort()
            raise
        finally:
            self._over.set()

    def _send(self) -> Answer:
        body = {
            "argv": self._words, "work_dir": "/", "environment": {}, "umask": 0o022,
            "no_input": self._source is None, "token": self._position,
        }  # fmt: skip
        return self._client.stream("POST", PATH, body=body, headers={"Idempotency-Key": self._key})

    def _obey(self, kind: bytes, content: bytes) -> None:
        if kind == b"o":
            self._output.append(content)
        elif kind == b"e":
            self._stderr += content[: MAX_STDERR_BYTES - len(self._stderr)]
        elif kind == b"p":
            self._pass_on()
            self._position = content.decode()
            at = int(json.loads(self._position)["at"])
            if at - self._acknowledged >= ACKNOWLEDGE_BYTES:
                self._acknowledged = at
                with suppress(Failure, LostAnswer):
                    self._post({"acknowledged": at})
        elif kind == b"s":
            self._path, _, _, flags = content.decode().split("\n")
            if "i" in flags and self._source is not None and self._sender is None:
                self._sender = threading.Thread(target=self._give, daemon=True)
                self._sender.start()

    def _pass_on(self) -> None:
        for data in self._output:
            if self._sink is not None:
                self._sink(data)
        self._output.clear()

    # -- input ------------------------------------------------------------------------------------

    def _give(self) -> None:
        try:
            self._give_all()
        except Exception as error:
            self._failure = error
            self._abort()

    def _give_all(self) -> None:
        assert self._source is not None
        at, data = 0, b"-"
        while data and not self._over.is_set():
            data = self._source.read(PIECE_BYTES)
            message: dict[str, object] = {"input": at, "data": base64.b64encode(data).decode()}
            while not self._over.is_set():
                state = self._insist(message)
                if not state["live"]:
                    return
                if state["input"] is not None or not data:
                    break
            at += len(data)

    def _insist(self, message: dict[str, object]) -> dict[str, object]:
        """Send it until the daemon answers."""
        until = time.monotonic() + OUTAGE_S
        while True:
            try:
                return self._post(message)
            except (LostAnswer, Unreachable, Refused) as error:
                if isinstance(error, Refused) and not _is_temporary(error):
                    return {"live": False}
                if time.monotonic() > until:
                    raise Unreachable(f"the connection to the daemon was lost: {error}") from None
                time.sleep(PAUSE_S)

    def _post(self, message: dict[str, object]) -> dict[str, object]:
        assert self._path is not None
        # A client of its own: the other one may be waiting for an answer.
        return self._new_client().request("POST", self._path, body=message).json()

    def _abort(self) -> None:
        if self._path is not None:
            with suppress(Failure, LostAnswer):
                self._post({"abort": True})


def _is_temporary(refused: Refused) -> bool:
    return refused.status >= 500 or refused.status == TOO_MANY
