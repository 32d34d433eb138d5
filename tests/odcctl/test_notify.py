"""odcctl notify: what it sends, and what it shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odcctl.commands import notify
from odcd.api.answers.notify import SentNotification, Webhook
from odcd.records.notification import EVENTS
from tests.odcctl.conftest import Odcctl
from tests.odcctl.peer import Peer, Reply, problem

PATH = "/v1/users/me/webhook"
URL = "https://hooks.example.org/T0/secret"


def a_hook(*recent: dict[str, Any], **fields: Any) -> dict[str, Any]:
    hook = {"url": "https://hooks.example.org/…", "events": ["end", "fail"],
            "set_at": "2026-07-01T10:00:00Z", "recent": list(recent), **fields}  # fmt: skip
    return msgspec.to_builtins(msgspec.convert(hook, Webhook))


def a_message(number: int = 7, **fields: Any) -> dict[str, Any]:
    one = {"id": number, "channel": "webhook", "kind": "test", "job_id": None,
           "at": "2026-07-01T10:00:00Z", "sent_at": None, "failed_at": None, "tries": 1,
           "trouble": None, **fields}  # fmt: skip
    return msgspec.to_builtins(msgspec.convert(one, SentNotification))


def test_the_events_are_those_of_the_server() -> None:
    assert notify.EVENTS == EVENTS


def test_set_sends_the_address_and_never_prints_it(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PUT", PATH, a_hook())
    done = odcctl("notify", "set", URL)
    assert done.out == ("https://hooks.example.org/… gets: end, fail. Try it: odcctl notify test\n")
    odcctl("notify", "set", URL, "--on", "END, fail")
    assert [request.body for request in peer.requests] == [
        {"url": URL}, {"url": URL, "events": ["end", "fail"]}
    ]  # fmt: skip


@pytest.mark.parametrize("events", ["sunrise", "end,sunrise", ","])
def test_unknown_events_are_refused_before_the_request(
    peer: Peer, odcctl: Odcctl, events: str
) -> None:
    done = odcctl("notify", "set", URL, "--on", events)
    assert done.code == 2
    assert peer.requests == []


def test_show_lists_the_last_notifications(peer: Peer, odcctl: Odcctl) -> None:
    sent = a_message(8, kind="end", job_id=3, sent_at="2026-07-01T10:00:01Z")
    failed = a_message(7, failed_at="2026-07-01T10:00:01Z", trouble="x answered 404")
    peer.on("GET", PATH, a_hook(sent, failed))
    lines = odcctl("notify", "show").out.splitlines()
    assert lines[0] == "https://hooks.example.org/…: end, fail"
    assert lines[1].split()[:4] == ["ID", "BY", "EVENT", "JOB"]
    assert "sent" in lines[2]
    assert lines[3].endswith("given up  x answered 404")
    peer.on("GET", PATH, a_hook(url=None, events=[], set_at=None))
    assert odcctl("notify", "show").out == "no webhook\n"


def test_test_waits_for_the_outcome(
    peer: Peer, odcctl: Odcctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "LOOK_S", 0.0)
    peer.on("POST", f"{PATH}/test", Reply({"id": 7}, status=201))
    peer.on("GET", PATH, a_hook(a_message(sent_at="2026-07-01T10:00:01Z")))
    done = odcctl("notify", "test")
    assert (done.code, done.out) == (0, "test message 7: sent\n")
    peer.on("GET", PATH, a_hook(a_message(failed_at="2026-07-01T10:00:01Z", trouble="x: 404")))
    done = odcctl("notify", "test")
    assert (done.code, done.out) == (1, "test message 7: given up: x: 404\n")


def test_remove_reports_that_there_is_none(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("DELETE", PATH, a_hook(url=None))
    assert odcctl("notify", "remove").out == "webhook removed\n"
    peer.on("DELETE", PATH, problem(400, "BadRequest", "OD010", "you have no webhook"))
    done = odcctl("notify", "remove")
    assert done.code == 1
    assert "you have no webhook" in done.err
