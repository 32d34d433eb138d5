"""The runner's requests: the version and term that a connection needs for one, and its answer."""

from __future__ import annotations

import os
import socket
import traceback
from pathlib import Path
from typing import Any

from odcd.runner import notices, protocol
from odcd.runner.connection import Connection
from odcd.runner.listener import Listener
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.memory import Memory
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.roster import Roster
from odcd.runner.steps.requests import StepRequests, step_key
from odcd.runner.streams import Streams
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions that a request with missing or wrong fields can cause."""
MAX_MALFORMED = 20
"""A connection with this many malformed requests is closed."""
_MAX_LOGGED = 200


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
        self._about = about
        self._observer: Connection | None = None
        self._listener = Listener(loop, log, owner_uid, self._connected)
        self._streams = Streams(loop, roster.attempts, users, roster.run_dir)
        roster.facts.send = self._send_facts
        self._step_requests = StepRequests(roster.steps, users)

    def listen(self, path: Path, owner_uid: int, owner_gid: int) -> None:
        """See Listener.listen."""
        self._listener.listen(path, owner_uid, owner_gid)

    def _connected(self, sock: socket.socket) -> None:
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
            self._log.limited("request.failed", op=line[:80], error=str(error)[:_MAX_LOGGED])
            message = f"{error.strerror}: {error.filename}" if error.filename else str(error)
            connection.send(
                {"id": number, "error": {"code": protocol.IO_ERROR, "message": message}}
            )
        except MALFORMED as error:
            self._log.limited("request.bad", why=repr(error)[:_MAX_LOGGED], where=_place(error))
            message = f"malformed: {error!r}"
            connection.send(
                {"id": number, "error": {"code": protocol.BAD_REQUEST, "message": message}}
            )
            connection.malformed += 1
            if connection.malformed >= MAX_MALFORMED:
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
                self._log.limited("term.raised", term=term)
        connection.version, connection.term = version, term
        return {"version": version, "term": self._memory.term, **self._about}

    def _do_observe(self, connection: Connection, request: dict[str, Any]) -> None:
        if connection.term != self._memory.term:
            raise ProtocolError(protocol.LEADERSHIP_LOST, "only the leading daemon may do that")
        self._observer = connection
        connection.send({"id": request.get("id"), "ok": {}})
        self._roster.facts.send_all(self._roster.attempts.members())
        raise Deferred

    def _send_facts(self, facts: list[dict[str, Any]]) -> None:
        if self._observer is None:
            return
        for at in range(0, len(facts), 500):
            self._observer.send({"facts": facts[at : at + 500]})

    def _do_start(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        self._texts.keep(request.get("texts") or {})
        need = self._roster.starts.missing_texts(request["dispatches"])
        if need:
            return {"need": need}
        self._roster.starts.accept(request["dispatches"])
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
        member = self._roster.attempts.first_live(int(request["job"]), int(request["attempt"]))
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
        self._log.limited("runner.adopted", expected=len(request["expected"]), **answer)
        return answer

    def _do_acknowledge(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.attempts.acknowledge([tuple(fact) for fact in request["facts"]])

    def _do_list(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "members": [
                {
                    "job": m.key.job, "attempt": m.key.attempt, "rank": m.key.rank, "uid": m.uid,
                    "state": m.state, "pid": m.job_pid, "ends_at": m.ends_at,
                }
                for m in self._roster.attempts.members()
            ]
        }  # fmt: skip

    def _do_state(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        member = self._roster.attempts.find(Key.of(request))
        return {"state": member.state if member else None}

    def _do_quit(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        """End the runner, unless something runs."""
        members = self._roster.attempts.members()
        live = sum(1 for member in members if member.live or member.has_hooks)
        live += len(self._roster.steps.live_attempts())
        self.quitting = live == 0
        return {"quitting": self.quitting, "live": live}

    def _do_open_output(self, connection: Connection, request: dict[str, Any]) -> None:
        self._streams.open_output(connection, request)
        raise Deferred

    def _do_attach(self, connection: Connection, request: dict[str, Any]) -> None:
        self._streams.attach(connection, request)
        raise Deferred

    def _do_start_step(self, _: Connection, request: dict[str, Any]) -> None:
        order = request["order"]
        member = self._roster.attempts.first_live(int(order["job"]), int(order["attempt"]))
        if member is None:
            raise ProtocolError(protocol.NOT_FOUND, "the job is not running")
        self._step_requests.start(order, member.uid)

    def _do_stop_step(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.steps.stop(
            request["job"], request["attempt"], int(request["signal"]), float(request["grace_s"]),
            step=int(request["step"]),
        )  # fmt: skip

    def _do_signal_step(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.steps.signal(
            request["job"], request["attempt"], int(request["signal"]), int(request["step"])
        )

    def _do_acknowledge_step(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.steps.acknowledge(step_key(request), forget=bool(request.get("forget")))

    def _do_release(self, _: Connection, request: dict[str, Any]) -> None:
        self._roster.release(request["job"], request["attempt"], int(request["exit_code"]))

    def _do_list_steps(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        keys = {Key(*map(int, key)) for key in request["keys"]}
        return {"steps": self._roster.steps.list(keys)}

    def _do_find_step(self, _: Connection, request: dict[str, Any]) -> dict[str, Any]:
        step = self._roster.steps.find(step_key(request))
        return {"known": step is not None, "end": step.end if step else None}

    def _do_attach_step(self, connection: Connection, request: dict[str, Any]) -> None:
        sock = self._roster.steps.connect(step_key(request))
        connection.send({"id": request.get("id"), "ok": {}}, sock.detach())
        raise Deferred

    def _do_open_journal(self, connection: Connection, request: dict[str, Any]) -> None:
        fd = self._roster.steps.open_journal(step_key(request))
        connection.send({"id": request.get("id"), "ok": {}}, fd)
        raise Deferred


def _place(error: BaseException) -> str:
    """The place in the code where it was raised."""
    places = [
        f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return places[-1] if places else "?"
