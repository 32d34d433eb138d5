"""Send notifications by mail, over one connection for several of them.

Only this module imports aiosmtplib, and only when mail is configured.
"""

from __future__ import annotations

import asyncio
import importlib
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from odcd.errors import OdcError
from odcd.notify.settings import NotifySettings
from odcd.notify.templates import Templates, one_line, read_templates
from odcd.notify.webhooks import SENT, Outcome
from odcd.records.notification import Notification

if TYPE_CHECKING:
    import aiosmtplib

POLICY = SMTP.clone(cte_type="7bit")
"""Servers without 8BITMIME accept it, too."""
TIMEOUT_S = 20.0
"""Of each step: the connection, and every command."""
MAX_PASSWORD_BYTES = 4096
UNAVAILABLE = 421
"""The reply of a server that closes the connection."""


def load() -> None:
    """Import what mail needs. Call it before root is dropped: afterwards, root's Python may not be
    readable."""
    importlib.import_module("aiosmtplib")
    importlib.import_module("email.mime.text")


class MailServerFailed(Exception):
    """No mail can be sent now: the server, the connection or the settings are at fault, and not the
    message. str() completes a sentence whose subject is the mail server."""


class MailConnection:
    def __init__(self, client: aiosmtplib.SMTP, sender: str, templates: Templates) -> None:
        self._client = client
        self._sender = sender
        self._templates = templates

    async def send(self, one: Notification) -> Outcome:
        """Raises MailServerFailed. If that happens after the message was transmitted, the server
        may have accepted it."""
        import aiosmtplib

        assert one.address is not None
        content = message_of(one, self._sender, self._templates).as_bytes()
        try:
            await self._client.sendmail(self._sender, [one.address], content)
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            return _refusal(refused.code, refused.message)
        except aiosmtplib.SMTPDataError as error:
            return _refusal(error.code, error.message)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise MailServerFailed(_why(error)) from error
        return SENT


class Mailer:
    def __init__(self, settings: NotifySettings) -> None:
        self._settings = settings
        self._templates = settings.mail_templates or read_templates()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[MailConnection]:
        """Raises MailServerFailed."""
        import aiosmtplib

        own = self._settings
        assert own.smtp_host is not None
        assert own.smtp_from is not None
        context = None if own.smtp_tls == "none" else await asyncio.to_thread(_context, own.smtp_ca)
        client = aiosmtplib.SMTP(
            hostname=own.smtp_host,
            port=own.smtp_port,
            timeout=TIMEOUT_S,
            use_tls=own.smtp_tls == "tls",
            start_tls=own.smtp_tls == "starttls",
            tls_context=context,
        )
        try:
            await client.connect()
            if own.smtp_user is not None and own.smtp_password_file is not None:
                password = await asyncio.to_thread(_password, own.smtp_password_file)
                await client.login(own.smtp_user, password)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            client.close()
            raise MailServerFailed(_why(error)) from error
        except BaseException:
            client.close()
            raise
        try:
            yield MailConnection(client, own.smtp_from, self._templates)
        finally:
            try:
                await client.quit(timeout=TIMEOUT_S)
            except (aiosmtplib.SMTPException, OSError):
                client.close()
            except BaseException:
                client.close()
                raise


def message_of(one: Notification, sender: str, templates: Templates) -> EmailMessage:
    """Subject and text are cleaned; the policy refuses line breaks in every header."""
    rendered = templates.render(one.kind, one.facts)
    message = EmailMessage(policy=POLICY)
    message["From"] = sender
    message["To"] = one.address
    message["Subject"] = rendered.subject
    message["Date"] = format_datetime(one.created_at)
    message["Message-ID"] = f"<{one.key}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-ODC-Event"] = one.kind
    if one.job_id is not None:
        message["X-ODC-Job"] = str(one.job_id)
    message.set_content(rendered.text)
    return message


def _refusal(code: int, text: str) -> Outcome:
    """Raises MailServerFailed if the server refuses everything now."""
    why = f"the mail server answered {code} {one_line(text)[:200]}"
    if code == UNAVAILABLE:
        raise MailServerFailed(f"answered {code} {one_line(text)[:200]}")
    return Outcome(of="refused" if code >= 500 else "retry", why=why)


def _context(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:
        raise MailServerFailed(f"cannot be checked: ODC_SMTP_CA: {error}") from None


def _password(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_PASSWORD_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MailServerFailed(f"cannot be logged in to: {file}: {_plain(error)}") from None


def _why(error: Exception) -> str:
    import aiosmtplib

    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        # Its text may repeat what was sent.
        return f"rejected the login: {error.code}"
    if isinstance(error, aiosmtplib.SMTPSenderRefused):
        return f"refused the sender: {error.code} {one_line(error.message)[:200]}"
    if isinstance(error, aiosmtplib.SMTPTimeoutError | TimeoutError):
        return f"did not answer within {TIMEOUT_S:g} s"
    return f"failed: {_plain(error)}"


def _plain(error: Exception) -> str:
    text = error.message if isinstance(error, OdcError) else str(error)
    return one_line(text)[:200] or type(error).__name__
