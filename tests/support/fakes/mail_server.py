"""A real SMTP server that fails in the ways that mail servers fail."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class MailServer:
    port: int = 0
    busy: bool = False
    """It accepts no sender for now."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Answers to recipients."""
    lost: set[int] = field(default_factory=set[int])
    """After accepting the n-th message, counted from 1, it closes the connection unanswered."""
    on_message: Callable[[], None] = lambda: None
    received: list[EmailMessage] = field(default_factory=list[EmailMessage])
    recipients: list[str] = field(default_factory=list[str])
    logins: list[str] = field(default_factory=list[str])
    encrypted: list[bool] = field(default_factory=list[bool])

    @property
    def ids(self) -> list[str]:
        return [str(one["Message-ID"]) for one in self.received]

    # -- aiosmtpd's handler -----------------------------------------------------------------------

    async def handle_MAIL(
        self, _: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.busy:
            return "451 4.3.0 Try again later"
        self.encrypted.append(session.ssl is not None)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(
        self, _: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _: Session, envelope: Envelope) -> str:
        content = cast(bytes, envelope.content)
        self.received.append(message_from_bytes(content, policy=policy.default))
        self.recipients.extend(envelope.rcpt_tos)
        self.on_message()
        if len(self.received) in self.lost:
            assert server.transport is not None
            server.transport.abort()  # type: ignore[attr-defined]
        return "250 OK"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        return AuthResult(success=data.password == b"correct-secret-2", handled=False)


@asynccontextmanager
async def a_mail_server(
    tls: ssl.SSLContext | None = None, *, login: bool = False, **fields: Any
) -> AsyncGenerator[MailServer]:
    """On the loop of the test. tls: it requires STARTTLS."""
    handler = MailServer(**fields)

    def speak() -> SMTP:
        return SMTP(
            handler,
            hostname="mail.test",
            tls_context=tls,
            require_starttls=tls is not None,
            authenticator=handler.authenticate if login else None,
            auth_required=login,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(speak, "127.0.0.1", 0)
    handler.port = server.sockets[0].getsockname()[1]
    try:
        yield handler
    finally:
        server.close()
