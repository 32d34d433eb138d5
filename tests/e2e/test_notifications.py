"""Mail and webhooks of a real daemon with real jobs, which is killed in between."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.test_first_steps import kill_daemon
from tests.odcd.notify.test_webhooks import a_sink
from tests.support.fakes.mail_server import a_mail_server
from tests.support.harness.beside import beside
from tests.support.harness.daemon import new_odc, wait


@pytest.mark.long
def test_users_get_mail_and_messages_also_after_a_kill() -> None:
    with new_odc() as odc, beside(a_mail_server()) as mail, beside(a_sink()) as sink:
        odc.environment |= {
            "ODC_SMTP_HOST": "127.0.0.1", "ODC_SMTP_PORT": str(mail.port), "ODC_SMTP_TLS": "none",
            "ODC_SMTP_FROM": "odc@example.org", "ODC_MAIL_DOMAIN": "example.org",
            "ODC_WEBHOOK_NETWORKS": "127.0.0.0/8",
        }  # fmt: skip
        odc.up("--node", "self")
        assert odc.odcctl("notify", "set", sink.url, "--on", "end,fail").returncode == 0
        assert odc.odcctl("notify", "test").stdout.endswith(": sent\n")

        def has_mails(count: int) -> None:
            wait(
                lambda: len(mail.received) >= count or None,
                lambda: f"{[one['Subject'] for one in mail.received]}{odc.log()}",
            )

        # odcd begins to send mail at its leader's first round.
        wait(lambda: odc.rows("select from odc.notify_state where mail") or None, odc.log)
        first = odc.submit("--mail-type=BEGIN,END", "--job-name=one", "--wrap", "true")
        has_mails(2)
        flag = odc.work / "go"
        second = odc.submit(
            "--mail-type=FAIL", "--mail-user=a@b.c", "--job-name=two",
            "--wrap", f"until [ -e {flag} ]; do sleep 0.2; done; exit 3",
        )  # fmt: skip
        odc.wait_for(second, "RUNNING")
        # What a killed daemon was sending is sent five minutes later.
        unsent = "select from odc.outbox where next_at is not null"
        wait(lambda: not odc.rows(unsent) or None, odc.log)
        kill_daemon(odc)
        flag.touch()
        odc.up("--node", "self")
        has_mails(3)
        subjects = [str(one["Subject"]) for one in mail.received]
        assert subjects[0].startswith(f"Job {first} (one) Began, Queued time 00:00:")
        assert subjects[1].startswith(f"Job {first} (one) Ended, Run time 00:00:")
        assert subjects[1].endswith(", COMPLETED, ExitCode 0")
        assert subjects[2].startswith(f"Job {second} (two) Failed, Run time 00:00:")
        assert subjects[2].endswith(", FAILED, ExitCode 3")
        assert mail.recipients[2] == "a@b.c"
        assert mail.recipients[0].endswith("@example.org")
        wait(lambda: len(sink.bodies) >= 3 or None, odc.log)
        assert [body["odc"]["event"] for body in sink.bodies] == ["test", "end", "fail"]
        assert max(Counter(mail.ids).values()) == max(Counter(sink.keys).values()) == 1
        assert "secret" not in (odc.home / "odcd.log").read_text()
