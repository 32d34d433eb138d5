"""The daemon's settings for notifications, read at its start; see odcd.settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from odcd.errors import BadRequest
from odcd.notify.templates import Templates, read_templates
from odcd.slurm.mail import check_address
from odcd.variables import read_words

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Tls = Literal["starttls", "tls", "none"]
PORTS: dict[Tls, int] = {"starttls": 587, "tls": 465, "none": 25}
PER_MINUTE = 300
PER_HOUR = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    smtp_host: str | None = None
    """ODC_SMTP_HOST. The mail server that notifications are sent through. Default none: no mail is
    sent, and --mail-type has no effect."""
    smtp_port: int = PORTS["starttls"]
    """ODC_SMTP_PORT. Its port. Default 587; with ODC_SMTP_TLS=tls 465, with none 25."""
    smtp_tls: Tls = "starttls"
    """ODC_SMTP_TLS. starttls: encrypt after a greeting, and send nothing if that fails; tls: from
    the start; none: do not encrypt. Default starttls."""
    smtp_ca: Path | None = None
    """ODC_SMTP_CA. A PEM file with the certificates that may sign the server's. Default the
    system's."""
    smtp_user: str | None = None
    """ODC_SMTP_USER. The account at the server; requires ODC_SMTP_PASSWORD_FILE, and TLS. Default
    none: no login."""
    smtp_password_file: Path | None = None
    """ODC_SMTP_PASSWORD_FILE. The file with its password; read again for each connection. Default
    none."""
    smtp_from: str | None = None
    """ODC_SMTP_FROM. The sender's address; required with ODC_SMTP_HOST. Default none."""
    smtp_per_minute: int = PER_MINUTE
    """ODC_SMTP_PER_MINUTE. Mails sent per minute; others wait. Default 300."""
    mail_domain: str | None = None
    """ODC_MAIL_DOMAIN. With --mail-type and no --mail-user, or a name without @, mail goes to
    NAME@DOMAIN. Default none: --mail-user must be an address."""
    mail_templates: Templates | None = None
    """ODC_MAIL_TEMPLATES. A folder whose files KIND.txt replace the texts of mails; see
    docs/operating/notifications.md. Default none."""
    per_hour: int = PER_HOUR
    """ODC_NOTIFY_PER_HOUR. Notifications of one user per hour, by mail and webhook together; more
    are dropped. Default 1000."""
    webhooks: bool = True
    """ODC_WEBHOOKS. off: users cannot set webhooks, and none are sent. Default on."""
    webhook_networks: tuple[Network, ...] = ()
    """ODC_WEBHOOK_NETWORKS. Networks that users' webhooks may reach although they are not public,
    such as 10.1.0.0/16, separated by commas; there also over http://. Default none."""

    @property
    def sends_mail(self) -> bool:
        return self.smtp_host is not None


def read_notify(environment: Mapping[str, str]) -> NotifySettings:
    """Raises BadRequest, naming the invalid variable. An empty variable is not set."""
    environment = {name: text for name, text in environment.items() if text}
    tls = environment.get("ODC_SMTP_TLS", "starttls")
    if tls not in ("starttls", "tls", "none"):
        raise BadRequest(
            f'ODC_SMTP_TLS="{tls[:40]}" is not a valid value', "Write starttls, tls or none."
        )
    templates = environment.get("ODC_MAIL_TEMPLATES")
    settings = NotifySettings(
        smtp_host=environment.get("ODC_SMTP_HOST"),
        smtp_tls=tls,
        smtp_port=_count(environment, "ODC_SMTP_PORT", PORTS[tls], 65_535),
        smtp_ca=_path(environment, "ODC_SMTP_CA"),
        smtp_user=environment.get("ODC_SMTP_USER"),
        smtp_password_file=_path(environment, "ODC_SMTP_PASSWORD_FILE"),
        smtp_from=environment.get("ODC_SMTP_FROM"),
        smtp_per_minute=_count(environment, "ODC_SMTP_PER_MINUTE", PER_MINUTE, 60_000),
        mail_domain=environment.get("ODC_MAIL_DOMAIN"),
        mail_templates=None if templates is None else read_templates(Path(templates)),
        per_hour=_count(environment, "ODC_NOTIFY_PER_HOUR", PER_HOUR, 1_000_000),
        webhooks=_switch(environment, "ODC_WEBHOOKS"),
        webhook_networks=tuple(map(_network, read_words(environment, "ODC_WEBHOOK_NETWORKS"))),
    )
    _check(settings)
    return settings


def _check(settings: NotifySettings) -> None:
    if settings.mail_domain is not None:
        _named(
            "ODC_MAIL_DOMAIN", settings.mail_domain, "user@", "Write a domain such as example.org."
        )
    if settings.smtp_from is not None:
        _named("ODC_SMTP_FROM", settings.smtp_from, "", "Write an address such as odc@example.org.")
    if settings.smtp_host is None:
        return
    if any(c.isspace() or not c.isprintable() for c in settings.smtp_host):
        raise BadRequest(
            f'ODC_SMTP_HOST="{settings.smtp_host[:100]}" is not the name of a server',
            "Write a name such as mail.example.org.",
        )
    if settings.smtp_from is None:
        raise BadRequest(
            "ODC_SMTP_HOST needs the address of a sender",
            "Set ODC_SMTP_FROM to an address such as odc@example.org.",
        )
    if (settings.smtp_user is None) != (settings.smtp_password_file is None):
        raise BadRequest(
            "only one of ODC_SMTP_USER and ODC_SMTP_PASSWORD_FILE is set", "Set both or neither."
        )
    if settings.smtp_user is not None and settings.smtp_tls == "none":
        raise BadRequest(
            "ODC_SMTP_USER needs an encrypted connection: others could read the password",
            "Set ODC_SMTP_TLS to starttls or tls.",
        )


def _named(name: str, text: str, before: str, hint: str) -> None:
    try:
        check_address(before + text)
    except BadRequest:
        raise BadRequest(f'{name}="{text[:100]}" is not valid', hint) from None


def _count(environment: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:12]) <= most):
        raise BadRequest(f'{name}="{text[:40]}" is not a number', f"Give 1 to {most}.")
    return int(text)


def _switch(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "on")
    if text not in ("on", "off"):
        raise BadRequest(f'{name}="{text[:40]}" is unknown', "Write on or off.")
    return text == "on"


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return None if text is None else Path(text).expanduser().absolute()


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise BadRequest(
            f'ODC_WEBHOOK_NETWORKS: "{text[:60]}" is not a network', "An example: 10.1.0.0/16."
        ) from None
