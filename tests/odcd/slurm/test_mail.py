"""--mail-type and --mail-user."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from odcd.errors import BadRequest
from odcd.records.notification import MAIL_TYPES, kinds_of
from odcd.slurm.mail import MailTo
from odcd.slurm.parse import ParsedSubmit, parse_submit
from odcd.slurm.request import SubmitArgv

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TO = MailTo(user="alice")
AT_HOME = MailTo(user="alice", domain="example.org")


def parse(*argv: str, to: MailTo | None = TO, script: str = "#!/bin/sh\ntrue\n") -> ParsedSubmit:
    body = {"argv": [*argv, "x.sh"], "work_dir": "/home/a", "script": script}
    return parse_submit(msgspec.convert(body, SubmitArgv), NOW, to)


def mail(*argv: str, to: MailTo | None = TO) -> tuple[list[str], str | None]:
    parsed = parse(*argv, to=to)
    assert parsed.warnings == ()
    return list(parsed.spec.mail_types), parsed.spec.mail_user


@pytest.mark.parametrize("name", MAIL_TYPES)
def test_every_mail_type_of_slurm_is_accepted(name: str) -> None:
    parsed = parse(f"--mail-type={name.lower()}", "--mail-user=a@b.c")
    assert parsed.warnings == ()
    assert parsed.spec.mail_types == ([] if name == "NONE" else [name])


def test_types_are_combined_and_the_last_option_counts() -> None:
    assert mail("--mail-type=END,FAIL", "--mail-user=a@b.c") == (["END", "FAIL"], "a@b.c")
    assert mail("--mail-type=END", "--mail-user=a@b", "--mail-type=BEGIN") == (["BEGIN"], "a@b")
    script = "#!/bin/sh\n#SBATCH --mail-type=END --mail-user=a@b\ntrue\n"
    assert parse("--mail-user=c@d", script=script).spec.mail_user == "c@d"


def test_all_is_what_it_is_in_slurm() -> None:
    assert kinds_of(["ALL", "TIME_LIMIT"]) == [
        "begin", "end", "fail", "requeue", "invalid_depend", "stage_out", "time_limit"
    ]  # fmt: skip


def test_an_address_is_completed_by_the_sites_domain() -> None:
    assert mail("--mail-type=END", to=AT_HOME) == (["END"], "alice@example.org")
    assert mail("--mail-type=END", "--mail-user=bob", to=AT_HOME)[1] == "bob@example.org"
    assert mail("--mail-type=END", "--mail-user=b@c.d", to=AT_HOME)[1] == "b@c.d"


def test_mail_without_an_address_or_a_type_is_a_warning() -> None:
    [warning] = parse("--mail-type=END").warnings
    assert warning == "options without effect: --mail-type (no mail is sent without --mail-user)"
    [warning] = parse("--mail-user=a@b").warnings
    assert "no mail is sent without --mail-type" in warning
    assert parse("--mail-type=NONE", "--mail-user=a@b").warnings == ()


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [("--mail-type=SOON", '--mail-type: "SOON" is not a mail type'),
     ("--mail-type=END,", '--mail-type: "" is not a mail type'),
     ("--mail-user=alice", '--mail-user: "alice" is not one mail address'),
     ("--mail-user=a@b,c@d", "--mail-user: .* is not one mail address"),
     ("--mail-user=a@b\nBcc: c@d", "--mail-user: .* is not one mail address")],
)  # fmt: skip
def test_values_that_are_wrong_are_refused(argv: str, complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        parse("--mail-type=END", argv)


def test_without_a_mail_server_all_values_have_no_effect_but_a_warning() -> None:
    parsed = parse("--mail-type=SOON", "--mail-user=<you>", to=None)
    [warning] = parsed.warnings
    assert warning == (
        "options without effect: --mail-type (this server sends no mail), "
        "--mail-user (this server sends no mail)"
    )
    assert parsed.spec.mail_types == []
