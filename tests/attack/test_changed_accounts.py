"""A session of the page ends with the account it was made for: another account with the same name
gets no rights."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from tests.attack.strangers import as_uid, ask, free_port, inside
from tests.attack.test_page_sessions import QUEUE, listening, look
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import needs_root

needs_useradd = pytest.mark.skipif(shutil.which("useradd") is None, reason="no useradd here")
pytestmark = [needs_root, needs_useradd, pytest.mark.long]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def add(name: str, uid: int) -> None:
    run("useradd", "--no-create-home", "--no-user-group", "--uid", str(uid), name)


@contextmanager
def account(name: str, uid: int) -> Generator[str]:
    """An account of this machine, removed at the end under whatever name it has then."""
    add(name, uid)
    try:
        yield name
    finally:
        for one in (name, f"{name}-renamed"):
            with suppress(subprocess.CalledProcessError):
                run("userdel", "--force", one)


def streaming(uid: int, port: int, cookie: str) -> threading.Thread:
    """A user who watches the queue until the daemon ends the stream."""

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/page/live?of={QUEUE}", headers={"Cookie": named(port, cookie)})
        answer = connection.getresponse()
        assert answer.status == 200
        with suppress(http.client.HTTPException, ConnectionError):
            while answer.read(1):
                pass

    thread = threading.Thread(target=as_uid, args=(uid, work), daemon=True)
    thread.start()
    return thread


def viewers(odc: Odc) -> int:
    with odc.asking("GET", "/metrics") as connection:
        text = connection.getresponse().read().decode()
    found = [line for line in text.splitlines() if line.startswith("odcd_page_viewers ")]
    return int(float(found[0].split()[1]))


def named(port: int, cookie: str) -> str:
    return f"odc-page-{port}={cookie.partition('=')[2]}"


def cancel(uid: int, port: int, cookie: str, job: int) -> int:
    path = f"/page/jobs/{job}/cancel"
    return ask(uid, port, "POST", path, body="sure=yes", Cookie=named(port, cookie)).status


@pytest.mark.parametrize("change", ["renamed", "name reused", "uid reused"])
def test_a_session_ends_when_its_account_changes(odc: Odc, change: str) -> None:
    """Before: an operator's session kept the rights of its user name for 12 hours, even if another
    user had that name or uid by then."""
    name, uid, other = f"odcboss{os.getpid()}", 64077, 64078
    with (
        account(name, uid),
        listening(odc, free_port(), ODC_OPERATORS=name) as port,
    ):
        cookie = inside(odc, uid, port)
        job = odc.submit("--hold", "--wrap", "true")
        assert look(uid, port, cookie).status == 200
        assert cancel(uid, port, cookie, job) == 303
        assert odc.job(job)["state"] == "CANCELLED"
        if change == "renamed":
            run("usermod", "--login", f"{name}-renamed", name)
            wait(lambda: look(uid, port, cookie).status == 401, odc.log)
        else:
            stream = streaming(uid, port, cookie)
            wait(lambda: viewers(odc) == 1, odc.log)
            run("userdel", "--force", name)
            add(*((name, other) if change == "name reused" else (f"{name}-renamed", uid)))
            # It ends even without any request.
            stream.join(60)
            assert not stream.is_alive()
        assert look(uid, port, cookie).status == 401
        second = odc.submit("--hold", "--wrap", "true")
        assert cancel(uid, port, cookie, second) == 401
        assert odc.job(second)["state"] == "PENDING"
        rows = odc.rows("select active from odc.api_key where kind = 'session'")
        assert [row["active"] for row in rows] == [False]
