"""Answers about webhooks and notifications."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class SentNotification(Answer):
    """kind: what it is about. tries: how often it was tried. trouble: why the last try failed."""

    id: int
    channel: Literal["mail", "webhook"]
    kind: str
    job_id: int | None
    at: str
    sent_at: str | None
    failed_at: str | None
    tries: int
    trouble: str | None


class Webhook(Answer):
    """url: up to its host, because the rest is often a secret. recent: the caller's last 10
    notifications, mails included, newest first."""

    url: str | None
    events: list[str]
    set_at: str | None
    recent: list[SentNotification]


class WebhookTest(Answer):
    """id: of the test message in the list of recent notifications."""

    id: int
