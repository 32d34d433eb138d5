"""The texts of mails and webhooks, and that users cannot break out of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadRequest
from odcd.notify.mail import message_of
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import body_of
from odcd.records.notification import EVENTS, Notification
from odcd.slurm.mail import check_address

TEMPLATES = read_templates()
FACTS = {"job": "123", "name": "name", "run_s": 62, "state": "COMPLETED", "exit_code": 0}


def one(kind: str = "end", **facts: Any) -> Notification:
    return Notification(
        id=1, key="odc-1-5", user_name="alice", address="alice@example.org", url=None, kind=kind,
        job_id=123, facts={**FACTS, **facts}, tries=1, created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "facts", "subject"),
    [
        ("end", {}, "Job 123 (name) Ended, Run time 00:01:02, COMPLETED, ExitCode 0"),
        ("fail", {"state": "FAILED", "exit_code": 2, "run_s": 90_000},
         "Job 123 (name) Failed, Run time 1-01:00:00, FAILED, ExitCode 2"),
        ("begin", {"queued_s": 5}, "Job 123 (name) Began, Queued time 00:00:05"),
        ("requeue", {"last_state": "NODE_FAIL"}, "Job 123 (name) Requeued, NODE_FAIL"),
        ("time_limit_80", {}, "Job 123 (name) Reached 80% of time limit, Run time 00:01:02"),
        ("end", {"tasks": 3, "completed": 2, "exit_code": 1},
         "Array 123 (name) Ended, 2 of 3 tasks COMPLETED, ExitCode 1"),
        ("expiry", {"minutes": 30}, "Dev server 123 (name) Ends in 30 minutes"),
    ],
)  # fmt: skip
def test_subjects(kind: str, facts: dict[str, Any], subject: str) -> None:
    assert TEMPLATES.render(kind, {**FACTS, **facts}).subject == subject


def test_every_kind_has_a_text() -> None:
    for kind in {*EVENTS} - {"array_tasks"} | {"test", "array_end", "array_fail"}:
        assert TEMPLATES.render(kind, FACTS).subject


def test_facts_that_are_not_known_have_no_line() -> None:
    text = TEMPLATES.render("end", FACTS).text
    assert "Signal" not in text
    assert "Exit code:   0" in text


@given(name=st.text(max_size=60), reason=st.text(max_size=60))
def test_a_name_cannot_add_a_header_or_a_recipient(name: str, reason: str) -> None:
    attack = f"{name}\r\nBcc: evil@example.org\r\n\r\n{name}"
    message = message_of(one(name=attack, reason=reason), "odc@example.org", TEMPLATES)
    head = message.as_bytes().partition(b"\r\n\r\n")[0]
    assert not any(line.lower().startswith(b"bcc") for line in head.split(b"\r\n"))
    assert message.get_all("To") == ["alice@example.org"]
    assert message["Message-ID"] == "<odc-1-5@example.org>"


@pytest.mark.parametrize(
    "address",
    ["", "alice", "a@b\nBcc: c@d", "a@b,c@d", "a b@c", "<a@b>", "a@b ", "a@-b", "a@b..c", "@b",
     "a@", "A <a@b>", '"a"@b', "a@b\0", f"{'a' * 300}@b", "a@b;c@d", "ü@b"],
)  # fmt: skip
def test_what_does_not_look_like_one_address_is_refused(address: str) -> None:
    with pytest.raises(BadRequest, match="not one mail address"):
        check_address(address)


def test_addresses() -> None:
    for address in ("a@b", "alice.smith+jobs@mail.example.org", "o'neil@example.org"):
        assert check_address(address) == address


def test_a_long_list_of_nodes_fits_in_a_mail() -> None:
    nodes = [f"node-{n:04}" for n in range(5000)]
    content = message_of(one(nodes=nodes), "odc@example.org", TEMPLATES).as_bytes()
    assert max(map(len, content.split(b"\r\n"))) < 998


def test_a_webhook_gets_text_for_slack_and_the_facts() -> None:
    body = json.loads(body_of(one(name="<!channel> & <@U1>\n"), TEMPLATES))
    assert body["text"].startswith("Job 123 (&lt;!channel&gt; &amp; &lt;@U1&gt;) Ended")
    assert body["odc"]["id"] == "odc-1-5"
    assert (body["odc"]["event"], body["odc"]["job_id"]) == ("end", 123)
    assert (body["odc"]["run_s"], body["odc"]["state"]) == (62, "COMPLETED")


def test_a_site_replaces_texts_by_files(tmp_path: Path) -> None:
    (tmp_path / "end.txt").write_text("[cluster] $job is over\n\nCost: $$5 for $name\n")
    templates = read_templates(tmp_path)
    assert templates.render("end", FACTS).subject == "[cluster] 123 is over"
    assert templates.render("end", FACTS).text == "Cost: $5 for name\n"
    assert templates.render("begin", FACTS) == TEMPLATES.render("begin", FACTS)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [("end", "$jbo", r"\$jbo is unknown"), ("end", "5 $ each", "not followed by a name"),
     ("ends", "x", "no kind of mail"), ("end", "x" * 70_000, "more than 65536 bytes")],
)  # fmt: skip
def test_wrong_texts_are_refused_with_their_file(
    tmp_path: Path, name: str, content: str, complaint: str
) -> None:
    (tmp_path / f"{name}.txt").write_text(content)
    with pytest.raises(BadRequest, match=complaint) as refused:
        read_templates(tmp_path)
    assert f"{name}.txt" in refused.value.message


def test_a_missing_folder_of_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="not a folder"):
        read_templates(tmp_path / "none")
