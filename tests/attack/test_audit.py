"""The audit log: every change and every refusal, with its user, source address and result."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from odcd.api.http.audited import Audited
from odcd.audit.log import AuditLog
from odcd.audit.refusal_meter import KEPT, MAX_LINES, MAX_OVERALL, WINDOW_S, RefusalMeter
from odcd.clock import SystemClock
from odcd.errors import OdcError
from odcd.home.account import service_account
from odcd.settings import read_audit
from tests.attack.strangers import ALICE, BOB, enter, free_port, inside, over_socket, ticket_of
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import needs_root

Line = dict[str, Any]


def lines_of(file: Path) -> list[Line]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def line_with(file: Path, fits: Callable[[Line], bool]) -> Line:
    return wait(
        lambda: next((line for line in lines_of(file) if fits(line)), None),
        lambda: file.read_text() if file.exists() else "no file",
    )


@pytest.mark.long
@needs_root
def test_the_audit_log_has_changes_and_refusals(odc: Odc) -> None:
    folder = odc.work.with_name("audit")
    folder.mkdir()
    folder.chmod(0o777)
    file, port = folder / "audit.log", free_port()
    odc.environment |= {"ODC_LISTEN": f"127.0.0.1:{port}", "ODC_AUDIT_LOG": str(file)}
    with odc.serving("up", "--node", "n1=h100:8"):
        job = odc.submit("--hold", "--wrap", "true")
        line = line_with(file, lambda line: line.get("id") == job)
        assert line.pop("at").endswith("Z")
        assert len(line.pop("request_id")) == 32
        assert line.pop("route") == line.pop("path")
        assert line == {
            "user": "root", "uid": 0, "operator": True, "by": "socket", "from": {"socket_uid": 0},
            "method": "POST", "status": 201, "id": job,
        }  # fmt: skip

        refused = over_socket(odc.home / "odcd.sock", BOB, "DELETE", "/v1/users/root/keys")
        assert refused["code"] == "OD013"
        line = line_with(file, lambda line: line["status"] == 403)
        assert (line["uid"], line["code"], line["operator"]) == (BOB, "OD013", False)
        assert line["route"] == "/v1/users/{user}/keys"

        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer odc_wrong"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        line = line_with(file, lambda line: line["route"] == "/v1/jobs" and line["by"] == "key")
        assert (line["status"], line["user"]) == (401, None)
        assert line["from"] == {"address": "127.0.0.1", "local_uid": 0}
        assert line["request_id"] == answer.headers["x-request-id"]

        inside(odc, ALICE, port)
        line = line_with(file, lambda line: line["path"] == "/page/enter")
        assert (line["uid"], line["status"]) == (ALICE, 303)
        assert line["from"] == {"address": "127.0.0.1", "local_uid": ALICE}
        assert enter(BOB, port, ticket_of(odc, ALICE)["ticket"]).status == 401
        line = line_with(file, lambda line: line["from"].get("local_uid") == BOB)
        assert line["status"] == 401

        # Reading is not a change; and after the log was moved away, a new file is started.
        odc.odcctl("queue")
        before = lines_of(file)
        assert not [line for line in before if line["method"] == "GET" and line["status"] < 400]
        file.rename(folder / "audit.log.1")
        odc.odcctl("cancel", str(job))
        line = line_with(file, lambda line: "cancel" in line["route"])
        assert line["status"] == 200
        last = odc.submit("--hold", "--wrap", "true")
    # When the daemon stops, it writes the remaining lines.
    assert lines_of(file)[-1]["id"] == last
    assert file.stat().st_mode & 0o007 == 0


def test_a_line_costs_microseconds_and_a_full_disk_costs_no_request(tmp_path: Path) -> None:
    full = AuditLog("/dev/full", SystemClock())
    full.note({"user": "a"})
    full.flush()
    full.note({"user": "b"})
    assert len(full._lines) == 2  # pyright: ignore[reportPrivateUsage]
    full.close()
    file = tmp_path / "audit.log"
    audit = AuditLog(str(file), SystemClock())
    for number in range(10_000):
        audit.note({"number": number})
    assert file.read_text() == ""  # no request waited for the disk
    audit.close()
    assert [line["number"] for line in lines_of(file)] == list(range(10_000))


def test_an_invalid_audit_log_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OdcError, match="cannot be opened"):
        AuditLog(str(tmp_path / "no" / "audit.log"), SystemClock())
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "victim")
    with pytest.raises(OdcError, match="cannot be opened"):
        AuditLog(str(link), SystemClock())
    assert not os.path.lexists(tmp_path / "victim")
    with pytest.raises(OdcError, match="not an absolute path"):
        read_audit({"ODC_AUDIT_LOG": "audit.log"}, detached=False)
    with pytest.raises(OdcError, match="needs standard output"):
        read_audit({"ODC_AUDIT_LOG": "-"}, detached=True)


def test_a_client_that_is_refused_cannot_fill_the_disk_of_the_audit_log() -> None:
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    meter = RefusalMeter(clock)
    admitted = [meter.admit("203.0.113.1") for _ in range(1000)]
    assert admitted == [0] * MAX_LINES + [None] * (1000 - MAX_LINES)
    assert meter.admit("203.0.113.2") == 0
    clock.move(WINDOW_S)
    assert meter.admit("203.0.113.1") == 1000 - MAX_LINES
    assert meter.admit("203.0.113.1") == 0
    # Many addresses cannot do so either.
    clock.move(WINDOW_S)
    lines = [meter.admit(f"2001:db8:0:{number:x}::/64") for number in range(50_000)]
    assert sum(line is not None for line in lines) <= MAX_OVERALL
    assert len(meter._windows) <= KEPT + 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500])
def test_requests_that_fail_cannot_fill_the_disk_either(tmp_path: Path, status: int) -> None:
    """Before: only 401, 403 and 429 were counted; a malformed login had a line each time."""
    file = tmp_path / "audit.log"
    log = AuditLog(str(file), VirtualClock(datetime(2026, 1, 1, tzinfo=UTC)))
    scope = {
        "type": "http", "method": "POST", "path": "/v1/auth/login", "headers": [],
        "client": ("203.0.113.1", 1), "state": {},
    }  # fmt: skip
    for _ in range(MAX_LINES + 50):
        Audited(log).answered(scope, "/v1/auth/login", None, Response(b"", status))
    for _ in range(MAX_LINES + 50):
        Audited(log).answered(scope, "/v1/auth/login", None, Response(b"", 201))
    log.close()
    statuses = [line["status"] for line in lines_of(file)]
    assert (statuses.count(status), statuses.count(201)) == (MAX_LINES, MAX_LINES + 50)


@pytest.mark.long
@needs_root
def test_commands_and_the_front_door_are_in_the_audit_log(odc: Odc) -> None:
    """Before: no one could see who made an API key, or who was rejected before a login."""
    folder = odc.work.with_name("audit")
    folder.mkdir()
    folder.chmod(0o777)
    file, port = folder / "audit.log", free_port()
    odc.environment |= {"ODC_LISTEN": f"127.0.0.1:{port}", "ODC_AUDIT_LOG": str(file)}
    with odc.serving("up", "--node", "n1=h100:8"):
        key = odc.odcd("token", "ann", "--uid", "64001", "--hours", "3").stdout.strip()
        line = line_with(file, lambda line: line.get("route") == "odcd token")
        assert (line["uid"], line["by"], line["status"]) == (0, "command", 200)
        assert (line["for_user"], line["for_uid"], line["hours"]) == ("ann", 64001, 3.0)
        assert key not in file.read_text()
        assert line["key"] in key
        for _ in range(MAX_LINES + 50):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                connection.recv(1000)
        line = line_with(file, lambda line: line.get("reason") == "host")
        assert (line["method"], line["from"]) == ("UNREAD", {"address": "127.0.0.1"})
        backup = odc.work / "backup"
        odc.odcd("backup", str(backup))
        refused = odc.odcd("restore", str(backup), check=False)
        assert refused.returncode != 0
    assert len([line for line in lines_of(file) if line.get("reason")]) == MAX_LINES
    # The daemon's account writes it, whoever runs the command.
    assert file.stat().st_uid == service_account().uid
    odc.odcd("restore", str(backup), "--replace")
    line = line_with(file, lambda line: line.get("route") == "odcd restore")
    assert (line["status"], line["replace"], line["file"]) == (200, True, str(backup))
    # Without a line there is no key.
    odc.environment["ODC_AUDIT_LOG"] = "/nowhere/audit.log"
    assert "cannot be opened" in odc.odcd("token", "ann", "--uid", "64001", check=False).stderr
    rows = odc.rows("select count(*) from odc.api_key where user_name = 'ann'")
    assert rows[0]["count"] <= 1
