"""Two ordinary users of one machine, and their requests to a daemon over loopback."""

from __future__ import annotations

import codecs
import http.client
import json
import os
import pickle
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.support.harness.daemon import Odc

T = TypeVar("T")

ALICE, BOB = 64001, 64002
TIMEOUT_S = 30
# A child that is another user may not read our Python.
codecs.lookup("idna")


def as_uid(uid: int, work: Callable[[], T]) -> T:
    """Return or raise the result of work(), run in a child process of that user."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        outcome: tuple[bool, object]
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            outcome = (True, work())
        except BaseException as error:
            outcome = (False, error)
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(outcome, answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    done, value = pickle.loads(data)
    if not done:
        raise value
    return value


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def cookie(self) -> str:
        """name=value of the one that was set."""
        return self.headers["set-cookie"].partition(";")[0]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def ask(
    uid: int, port: int, method: str, path: str, *, body: str | None = None, **headers: str
) -> Reply:
    """One request over loopback as that user."""

    def work() -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, _headers(port, headers, body))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    return as_uid(uid, work)


def _headers(port: int, headers: Mapping[str, str], body: str | None) -> dict[str, str]:
    origin = {} if body is None else {
        "Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/x-www-form-urlencoded",
    }  # fmt: skip
    return {"Accept": "text/html", **origin, **headers}


def ticket_of(odc: Odc, uid: int, query: str = "") -> dict[str, Any]:
    """A ticket for the page, as that user's `odcctl page` requests it."""
    return over_socket(odc.home / "odcd.sock", uid, "POST", f"/v1/page/tickets{query}")


def over_socket(path: Path, uid: int, method: str, target: str, body: object = None) -> Any:
    def work() -> Any:
        connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        data = None if body is None else json.dumps(body)
        connection.request(method, target, data, {"Content-Type": "application/json"})
        answer = connection.getresponse().read()
        connection.close()
        return json.loads(answer)

    return as_uid(uid, work)


def enter(uid: int, port: int, ticket: str) -> Reply:
    return ask(uid, port, "POST", "/page/enter", body=f"ticket={ticket}")


def inside(odc: Odc, uid: int, port: int) -> str:
    """The cookie of a browser that signed in."""
    reply = enter(uid, port, ticket_of(odc, uid)["ticket"])
    assert reply.status == 303, reply
    return reply.cookie
