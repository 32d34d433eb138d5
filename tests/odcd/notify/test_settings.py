"""The settings for mail and webhooks."""

from __future__ import annotations

import ipaddress

import pytest

from odcd.errors import BadRequest
from odcd.notify.settings import NotifySettings, read_notify

SMTP = {"ODC_SMTP_HOST": "mail.example.org", "ODC_SMTP_FROM": "odc@example.org"}


def test_defaults() -> None:
    assert read_notify({}) == NotifySettings()
    assert not read_notify({"ODC_SMTP_HOST": ""}).sends_mail
    assert read_notify(SMTP).sends_mail


def test_the_port_follows_the_encryption() -> None:
    ports = [read_notify({**SMTP, "ODC_SMTP_TLS": tls}).smtp_port for tls in
             ("starttls", "tls", "none")]  # fmt: skip
    assert ports == [587, 465, 25]
    assert read_notify({**SMTP, "ODC_SMTP_PORT": "2525"}).smtp_port == 2525


def test_networks_for_webhooks() -> None:
    found = read_notify({"ODC_WEBHOOK_NETWORKS": "10.1.0.0/16, fd00::/8"}).webhook_networks
    assert found == (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/8"))


@pytest.mark.parametrize(
    "variables",
    [
        {"ODC_SMTP_HOST": "mail"},
        {**SMTP, "ODC_SMTP_FROM": "odc"},
        {**SMTP, "ODC_SMTP_HOST": "a b"},
        {**SMTP, "ODC_SMTP_TLS": "ssl"},
        {**SMTP, "ODC_SMTP_PORT": "0"},
        {**SMTP, "ODC_SMTP_PORT": "66000"},
        {**SMTP, "ODC_SMTP_USER": "odc"},
        {**SMTP, "ODC_SMTP_PASSWORD_FILE": "/run/secret"},
        {**SMTP, "ODC_SMTP_USER": "odc", "ODC_SMTP_PASSWORD_FILE": "/x", "ODC_SMTP_TLS": "none"},
        {**SMTP, "ODC_SMTP_PER_MINUTE": "-1"},
        {"ODC_MAIL_DOMAIN": "a b"},
        {"ODC_MAIL_TEMPLATES": "/no/such/folder"},
        {"ODC_NOTIFY_PER_HOUR": "many"},
        {"ODC_WEBHOOKS": "maybe"},
        {"ODC_WEBHOOK_NETWORKS": "10.0.0.1/8"},
    ],
)
def test_invalid_settings_are_refused_with_their_name(variables: dict[str, str]) -> None:
    with pytest.raises(BadRequest) as refused:
        read_notify(variables)
    assert "ODC_" in refused.value.message
    assert refused.value.hint or "not a folder" in refused.value.message
