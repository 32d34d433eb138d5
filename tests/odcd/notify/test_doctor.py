"""odcd doctor and the mail server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.doctor.mail import examine_mail
from odcd.notify.settings import NotifySettings
from tests.support.fakes.mail_server import MailServer, a_mail_server
from tests.support.harness.beside import beside


@pytest.fixture
def server() -> Iterator[MailServer]:
    """In a thread: the doctor has a loop of its own."""
    with beside(a_mail_server()) as server:
        yield server


def test_a_mail_server_that_answers_is_reported(server: MailServer) -> None:
    settings = NotifySettings(
        smtp_host="127.0.0.1", smtp_port=server.port, smtp_tls="none", smtp_from="odc@example.org"
    )
    [found] = examine_mail(settings)
    assert (found.about, found.verdict) == ("mail", "ok")
    assert server.received == []
    assert examine_mail(NotifySettings()) == []


def test_what_prevents_mail_is_named(server: MailServer, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("x")
    password.chmod(0o644)
    settings = NotifySettings(
        smtp_host="127.0.0.1", smtp_port=server.port, smtp_from="odc@example.org",
        smtp_user="odc", smtp_password_file=password,
    )  # fmt: skip
    note, bad = examine_mail(settings)
    assert (note.verdict, bad.verdict) == ("note", "bad")
    assert str(password) in note.text
    assert f"127.0.0.1:{server.port}" in bad.text
