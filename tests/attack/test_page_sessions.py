"""No other user of the machine can use a session of the page, or a ticket for one."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odcd.front import near
from tests.attack.strangers import (
    ALICE,
    BOB,
    Reply,
    as_uid,
    ask,
    enter,
    free_port,
    inside,
    ticket_of,
)
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import needs_root

QUEUE = "/page/queue"
pytestmark = needs_root


@contextmanager
def listening(odc: Odc, port: int, **environment: str) -> Iterator[int]:
    """The daemon on that port of loopback."""
    odc.environment |= {"ODC_LISTEN": f"127.0.0.1:{port}", **environment}
    with odc.serving("up", "--node", "n1=h100:8"):
        yield port


def look(uid: int, port: int, cookie: str) -> Reply:
    """With the cookie under the name that this port's browser would give it."""
    value = cookie.partition("=")[2]
    return ask(uid, port, "GET", QUEUE, Cookie=f"odc-page-{port}={value}")


@pytest.mark.long
def test_a_cookie_works_only_on_connections_of_its_user(odc: Odc) -> None:
    with listening(odc, free_port()) as port:
        cookie = inside(odc, ALICE, port)
        assert look(ALICE, port, cookie).status == 200
        for other in (BOB, 0):
            reply = look(other, port, cookie)
            assert reply.status == 401
            assert b"not valid for user" in reply.body
            assert b"ODC_PROXY_USERS" in reply.body
        # Such a request can change as little as it can see.
        assert (
            ask(BOB, port, "POST", "/page/jobs/1/cancel", body="sure=yes", Cookie=cookie).status
            == 401
        )
        assert look(ALICE, port, cookie).status == 200
        assert "page.session_elsewhere" in (odc.home.with_name(f"{odc.home.name}.log").read_text())


def taken_by_impostor(port: int) -> str:
    """Bob listens on the daemon's former port; Alice's browser returns, and Bob reads its
    cookie."""
    server = as_uid_listener(BOB, port)
    try:
        with socket.create_connection(("127.0.0.1", port)) as browser:
            value = "Cookie: odc-page-x=SECRET"
            browser.sendall(f"GET /page/live HTTP/1.1\r\nHost: x\r\n{value}\r\n\r\n".encode())
            accepted, _ = server.accept()
            with accepted:
                return accepted.recv(4096).decode()
    finally:
        server.close()


def as_uid_listener(uid: int, port: int) -> socket.socket:
    """A listener that a user could make: its uid is only checked by the kernel at bind()."""
    os.seteuid(uid)
    try:
        return socket.create_server(("127.0.0.1", port))
    finally:
        os.seteuid(0)


@pytest.mark.long
def test_a_cookie_stolen_during_a_restart_is_useless(odc: Odc) -> None:
    first, second = free_port(), free_port()
    with listening(odc, first):
        cookie = inside(odc, ALICE, first)
    assert "SECRET" in taken_by_impostor(first)  # what bob learns is the whole cookie
    with listening(odc, second):
        assert look(BOB, second, cookie).status == 401
        reply = look(ALICE, second, cookie)
        assert reply.status == 401
        assert b"port has changed" in reply.body
    with listening(odc, first):
        assert look(BOB, first, cookie).status == 401
        assert look(ALICE, first, cookie).status == 200


@pytest.mark.long
def test_no_user_can_take_the_port_of_roots_page(odc: Odc) -> None:
    del odc.environment["ODC_LISTEN"]
    with odc.serving("up", "--node", "n1=h100:8"):
        url = ticket_of(odc, ALICE)["url"]
        port = int(url.split(":")[2].partition("/")[0])
        assert 720 <= port < 728
        assert look(ALICE, port, inside(odc, ALICE, port)).status == 200
    unprivileged = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()
    if int(unprivileged) > port:
        with pytest.raises(PermissionError):
            as_uid(BOB, lambda: socket.create_server(("127.0.0.1", port)).close())


@pytest.mark.long
def test_a_ticket_works_only_for_the_user_who_requested_it(odc: Odc) -> None:
    with listening(odc, free_port()) as port:
        ticket = ticket_of(odc, ALICE)
        for reply in (
            enter(BOB, port, ticket["ticket"]), ask(BOB, port, "GET", ticket["path"]),
            enter(0, port, ticket["ticket"]),
        ):  # fmt: skip
            assert reply.status == 401
            assert b"that link is for user 64001" in reply.body.lower()
            assert "set-cookie" not in reply.headers
        assert enter(ALICE, port, ticket["ticket"]).status == 303
        # Root requests a browser session of Bob's: sudo odcctl page.
        ticket = ticket_of(odc, 0, f"?browser_uid={BOB}")
        assert enter(ALICE, port, ticket["ticket"]).status == 401
        assert enter(BOB, port, ticket["ticket"]).status == 303


@pytest.mark.long
def test_a_local_proxy_is_identified_by_its_account(odc: Odc) -> None:
    proxy = 64003
    with listening(odc, free_port(), ODC_PROXY_USERS=str(proxy)) as port:
        cookie = enter(proxy, port, ticket_of(odc, ALICE)["ticket"]).cookie
        assert look(proxy, port, cookie).status == 200
        for stranger in (ALICE, BOB):
            assert look(stranger, port, cookie).status == 401
        # A session of loopback does not become one of the proxy, which cannot distinguish users.
        assert look(proxy, port, inside(odc, ALICE, port)).status == 401


@pytest.mark.long
def test_the_command_line_of_the_browser_does_not_contain_the_ticket(
    odc: Odc, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\ntr "\\0" " " < /proc/$$/cmdline >> {seen}\necho >> {seen}\n')
    browser.chmod(0o755)
    with listening(odc, free_port()):
        odc.environment |= {"BROWSER": str(browser), "TMPDIR": str(tmp_path)}
        done = odc.odcctl("page", "--open")
        ticket = done.stdout.strip().partition("ticket=")[2]
        assert ticket.startswith("odc_")
        command_line = wait(
            lambda: seen.exists() and seen.read_text().strip(), lambda: "no browser"
        )
        assert ticket not in str(command_line)
        file = Path(str(command_line).rpartition("file://")[2].split()[0])
        assert ticket in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        with pytest.raises(PermissionError):
            as_uid(BOB, file.read_text)
        deadline = time.monotonic() + 90
        while file.parent.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not file.parent.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("lookup", [near._ask_kernel, near._read_proc])  # pyright: ignore
def test_the_kernel_identifies_the_user_of_a_connection(
    host: str, lookup: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "_ask_kernel", lookup)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server(
        ("::" if "ffff" in host else host, 0), family=family, dualstack_ipv6="ffff" in host
    ) as server:
        port = server.getsockname()[1]
        client = socket.socket(family)
        os.fchown(client.fileno(), BOB, BOB)
        client.connect((host, port))
        accepted, theirs = server.accept()
        with accepted:
            ours = accepted.getsockname()[:2]
            assert near.find_origin(ours, theirs[:2]) == near.Origin("near", BOB, port)
            client.close()
            # The kernel reports uid 0 for a socket that no process holds: that is not root.
            assert near.find_origin(ours, theirs[:2]).kind == "unknown"
    assert near.find_origin(("192.0.2.1", 80), ("192.0.2.9", 1234)).kind == "far"
