"""Check that the mail server accepts a connection and the login. No mail is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

from odcd.doctor.host import Finding
from odcd.notify.mail import Mailer, MailServerFailed
from odcd.notify.settings import NotifySettings

ABOUT = "mail"
OTHERS = 0o077


def examine_mail(settings: NotifySettings) -> list[Finding]:
    """No findings if no mail is sent."""
    if settings.smtp_host is None:
        return []
    place = f"{settings.smtp_host}:{settings.smtp_port}"
    found = [] if settings.smtp_password_file is None else _password(settings.smtp_password_file)
    try:
        asyncio.run(_connect(settings))
    except MailServerFailed as error:
        hint = "Check ODC_SMTP_HOST, and the settings beside it: docs/operating/notifications.md."
        text = f"the mail server {place} {error}"
        return [*found, Finding(about=ABOUT, verdict="bad", text=text, hint=hint)]
    login = "" if settings.smtp_user is None else f" as {settings.smtp_user}"
    text = f"{place} accepts connections ({settings.smtp_tls}){login}"
    return [*found, Finding(about=ABOUT, verdict="ok", text=text)]


def _password(file: Path) -> list[Finding]:
    try:
        mode = file.stat().st_mode
    except OSError:
        return []  # The connection reports it.
    if not mode & OTHERS:
        return []
    return [
        Finding(
            about=ABOUT,
            verdict="note",
            text=f"other users of this machine may read {file}",
            hint=f"Run `chmod 600 {file}`, and make odcd's account its owner.",
        )
    ]


async def _connect(settings: NotifySettings) -> None:
    async with Mailer(settings).connect():
        pass
