"""The runner's socket: who may connect, the version and term of a connection, and its requests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
import traceback
from pathlib import Path
from typing import Any

from odcd.runner import descriptors, notices, opener, protocol
from odcd.runner.connection import Connection
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.memory import Memory
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.roster import Roster
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions that a request with missing or wrong fields can cause."""
MOST_MALFORMED = 20
"""A connection with this many malformed requests is closed."""
_CREDENTIALS = struct.Struct("3i")
_LONGEST = 200


class Deferred(Exception):
    """The answer is sent later."""


class Server:
    def __init__(
        self,
        loop: Loop,
        log: Log,
        roster: Roster,
        memory: Memory,
        texts: Texts,
        *,
        owner_uid: int,
        users: Users,
        about: dict[str, Any],
    ) -> None:
        """about: this runner's description for the answer to hello."""
        self.loop = loop
        self.connections: set[Connection] = set()
        self.quitting = False
        self._log = log
        self._roster = roster
        self._memory = memory
        self._texts = texts
        self._allowed = {0, owner_uid, os.geteuid()}
        self._about = about
        self._users = users
        self._observer: Connection | None = None
        self._listener: socket.socket | None = None
        roster.facts.tell = self._tell

    def listen(self, path: Path, owner_uid: int, owner_gid: int) -> None:
        """Accept connections at path, and stop accepting at the previous one. Raises OSError."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        # A socket's path may have at most 107 bytes: use the folder's descriptor instead.
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, owner_uid, owner_gid)
        listener.listen(64)
        listener.setblocking(False)
        self.loop.watch(listener, lambda _: self._accept(listener))
        if self._listener is not None:
            self.loop.forget(self._listener)
            self._listener.close()
        self._listener = listener

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError as error:
            self._log.asked("accept.failed", error=error)
            return
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid = _CREDENTIALS.unpack(raw)[1]
        if uid not in self._allowed:
            self._log.asked("peer.refused", uid=uid)
            sock.close()
            return
        sock.setblocking(False)
        connection = Connection(sock, self.loop, self.answer, self.left)
        self.connections.add(connection)
        self.loop.watch(sock, connection.on_ready)

    def left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if self._observer is connection:
            self._observer = None

    def answer(self, connection: Connection, line: bytes) -> None:
        number: object = None
        try:
            request = protocol.decode(line)
            number = request.get("id")
            connection.send({"id": number, "ok": self._obey(connection, request)})
        except Deferred:
            return
        except ProtocolError as error:
            connection.send({"id": number, "error": {"code": error.code, "message": error.message}})
        except OSError as error:
            self._log.asked("request.failed", op=line[:80], error=str(error)[:_LONGEST])
            message = f"{error.strerror}: {error.filename}" if error.filename else str(error)
            connection.send(
                {"id": number, "error": {"code": protocol.IO_ERROR, "message": message}}
            )
        except MALFORMED as error:
            self._log.asked("request.bad", why=repr(error)[:_LONGEST], where=_place(error))
            message = f"malformed: {error!r}"
            connection.send(
                {"id": number, "error": {"code": protocol.BAD_REQUEST, "message": message}}
            )
            connection.malformed += 1
            if connection.malformed >= MOST_MALFORMED:
                connection.close()

    def _obey(self, connection: Connection, request: dict[str, Any]) -> dict[str, Any]:
        op = request.get("op")
        if op == "hello":
            return self._hello(connection, request)
        if connection.version is None:
            raise ProtocolError(protocol.BAD_REQUEST, "say hello first")
        if op in protocol.COMMANDS and connection.term != self._memory.term:
            raise ProtocolError(
                protocol.LEADERSHIP_LOST,
                f"term {connection.term} is over: the current term is {self._memory.term}",
            )
        handler = getattr(self, f"_do_{op}", None)
        if handler is None:
            raise ProtocolError(protocol.BAD_REQUEST, f"no such operation: {op}")
        return handler(connection, request) or {}

    def _hello(self, connection: Connection, request: dict[str, Any]) -> dict[str, Any]:
        version = protocol.common_version(request.get("versions"))
        term = request.get("term")
        if term is not None:
            if term < self._memory.term:
                raise ProtocolError(
                    protocol.LEADERSHIP_LOST,
                    f"term {term} is over: the current term is {self._memory.term}",
                )
            if term > self._memory.term:
                self._memory.raise_term(int(term))
                self._log.asked("term.raised", term=term)
        connection.version, connection.term = version, term
        return {"version": version, "term": self._memory.term, **self._about}

    def _do_observe(self, connection: Connection, request: dict[str, Any]) -> None:
        if connection.term != self._memory.term:
            raise ProtocolError(protocol.LEADERSHIP_LOST, "only the leading daemon may do that")
        self._observer = connection
        connection.send({"id": request.get("id"), "ok": {}})
        self._roster.facts.tell_all(self._roster.members())
        raise Deferred

    def _tell(self, facts: list[dict[str, Any]]) -> None:
        if self._observer is None:
            return
        for at in range(0, len(facts), 500):
            self._observer.send({"facts": facts[at : at + 500]})

    def _do_start(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        self._texts.keep(request.get("texts") or {})
        need = self._roster.missing_texts(request["dispatches"])
        if need:
            return {"need": need}
        self._roster.start(request["dispatches"])
        return {}

    def _do_stop(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.stop(
            request["job"], request["attempt"], int(request["signal"]), float(request["grace_s"]),
            int(request.get("ranks", 1)),
        )  # fmt: skip

    def _do_signal(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.signal(
            request["job"], request["attempt"], int(request["signal"]),
            batch_only=bool(request["batch_only"]),
        )  # fmt: skip

    def _do_set_end(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.set_end(request["job"], request["attempt"], request["ends_at"])

    def _do_tell(self, connection: Connection, request: dict[str, Any]) -> None:
        """Deliver a notice with odcd.runner.notices, and answer with the result."""
        notice = notices.Notice.of(request)
        member = self._roster.first_live(int(request["job"]), int(request["attempt"]))
        if member is None:
            raise ProtocolError(protocol.NOT_FOUND, "it is not running")
        if member.state != "running":
            raise ProtocolError(protocol.NOT_READY, f"it is {member.state}")

        def done(answer: dict[str, Any]) -> None:
            if answer["trouble"]:
                self._log.info(
                    "notice.trouble", member=member.key, why="; ".join(answer["trouble"])
                )
            connection.send({"id": request.get("id"), "ok": answer})

        screen = f"{self._roster.run_dir}/terminals/{member.key}"
        notices.deliver(self.loop, notice, member, screen, done, switch_user=os.geteuid() == 0)
        raise Deferred

    def _do_adopt(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._roster.adopt([Key(*map(int, key)) for key in request["expected"]])
        self._log.asked("runner.adopted", expected=len(request["expected"]), **answer)
        return answer

    def _do_acknowledge(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.acknowledge([tuple(fact) for fact in request["facts"]])

    def _do_list(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "members": [
                {
                    "job": m.key.job, "attempt": m.key.attempt, "rank": m.key.rank, "uid": m.uid,
                    "state": m.state, "pid": m.job_pid, "ends_at": m.ends_at,
                }
                for m in self._roster.members()
            ]
        }  # fmt: skip

    def _do_state(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        member = self._roster.find(_key(request))
        return {"state": member.state if member else None}

    def _do_quit(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        """End the runner, unless something runs."""
        live = sum(1 for member in self._roster.members() if member.live)
        self.quitting = live == 0
        return {"quitting": self.quitting, "live": live}

    def _do_open_output(self, connection: Connection, request: dict[str, Any]) -> None:
        """Return a descriptor for reading a job's output. spool: "out" or "err" instead of a
        path."""
        path = request.get("path")
        refusal = self._users.refusal(int(request["uid"]))
        if refusal:
            raise ProtocolError(protocol.IO_ERROR, refusal)
        if request.get("spool"):
            name = f"{_key(request)}.{'err' if request['spool'] == 'err' else 'out'}"
            answer, fds = opener.open_kept(f"{self._roster.run_dir}/output/{name}", request["uid"])
            self._opened(connection, request, answer, fds)
            raise Deferred
        if request.get("by_socket"):
            self._open_by_socket(connection, request)
            raise Deferred
        helper = opener.open_as(
            str(path), int(request["uid"]), int(request["gid"]), switch_user=os.geteuid() == 0
        )
        over = False

        def ready(_: int) -> None:
            data, fds = descriptors.receive(helper.channel, 65536, 1)
            end(json.loads(data) if data else {"error": "the process that opened it died"}, fds)

        def late() -> None:
            if not over:
                end({"error": f"{path} could not be opened within {opener.OPEN_S:g} s"}, [])

        def end(answer: dict[str, Any], fds: list[int]) -> None:
            nonlocal over
            over = True
            self.loop.forget(helper.channel)
            helper.close()
            self._opened(connection, request, answer, fds)

        self.loop.watch(helper.channel, ready)
        self.loop.at(time.time() + opener.OPEN_S, late)
        raise Deferred

    def _open_by_socket(self, connection: Connection, request: dict[str, Any]) -> None:
        """Answer with a socket; the process that opens the file sends its answer there."""
        asking, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            helper = opener.open_for(
                str(request.get("path")), int(request["uid"]), int(request["gid"]), answering,
                switch_user=os.geteuid() == 0,
            )  # fmt: skip
        except BaseException:
            asking.close()
            raise
        finally:
            answering.close()
        over = False

        def end(_: int = 0) -> None:
            nonlocal over
            if not over:
                over = True
                self.loop.forget(helper.channel)
                helper.close()

        self.loop.watch(helper.channel, end)
        self.loop.at(time.time() + opener.OPEN_S, end)
        connection.send({"id": request.get("id"), "ok": {}}, asking.detach())

    def _opened(
        self, connection: Connection, request: dict[str, Any], answer: dict[str, Any],
        fds: list[int],
    ) -> None:  # fmt: skip
        if "ok" in answer:
            connection.send({"id": request.get("id"), "ok": {}}, fds[0])
        else:
            code = protocol.NOT_FOUND if answer.get("missing") else protocol.IO_ERROR
            error = {"code": code, "message": answer["error"]}
            connection.send({"id": request.get("id"), "error": error})

    def _do_attach(self, connection: Connection, request: dict[str, Any]) -> None:
        """Return a connection to the member's terminal; odcd.runner.terminal describes its
        frames."""
        key = _key(request)
        member = self._roster.find(key)
        if member is None or not member.live:
            raise ProtocolError(protocol.NOT_FOUND, f"member {key} is not running")
        terminal = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A terminal whose queue is full, because its shim is busy, must not block everything else.
        terminal.setblocking(False)
        try:
            folder = os.open(
                self._roster.run_dir / "terminals", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
            )
            try:
                terminal.connect(f"/proc/self/fd/{folder}/{key}")
            finally:
                os.close(folder)
        except BlockingIOError:
            terminal.close()
            text = f"the terminal of member {key} accepts no one now"
            raise ProtocolError(protocol.NOT_READY, text) from None
        except OSError as error:
            terminal.close()
            code = protocol.NOT_FOUND if member.state == "running" else protocol.NOT_READY
            raise ProtocolError(code, f"member {key} has no terminal: {error.strerror}") from None
        terminal.setblocking(True)
        connection.send({"id": request.get("id"), "ok": {}}, terminal.detach())
        raise Deferred


def _key(request: dict[str, Any]) -> Key:
    return Key(int(request["job"]), int(request["attempt"]), int(request["rank"]))


def _place(error: BaseException) -> str:
    """The place in the code where it was raised."""
    places = [
        f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return places[-1] if places else "?"
