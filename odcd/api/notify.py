"""/v1/users/me/webhook: the caller's webhook, and their last notifications."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.notify import Webhook, WebhookTest
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import BadRequest, TooManyRequests
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import MAX_URL_CHARS, Webhooks
from odcd.records.fields import PRINTABLE
from odcd.records.notification import DEFAULT_EVENTS, Event

PATH = "/v1/users/me/webhook"


class SetWebhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL_CHARS, pattern=PRINTABLE)]
    """https://HOST/PATH, at a public address."""
    events: Annotated[list[Event], msgspec.Meta(min_length=1, max_length=20)] = msgspec.field(
        default_factory=lambda: list(DEFAULT_EVENTS)
    )
    """The events to send. array_tasks: each task of an array instead of the whole."""


class NotifyRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._set = msgspec.json.Decoder(SetWebhook)
        self._webhooks = Webhooks(api.notify.webhook_networks, read_templates())

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path=PATH,
                tag="accounts",
                serve=self.show,
                answers={200: (Webhook,)},
                summary="Show the caller's webhook and last notifications",
            ),
            Operation(
                method="PUT",
                path=PATH,
                tag="accounts",
                serve=self.set,
                body=SetWebhook,
                answers={200: (Webhook,)},
                summary="Set the caller's webhook",
            ),
            Operation(
                method="DELETE",
                path=PATH,
                tag="accounts",
                serve=self.remove,
                answers={200: (Webhook,)},
                summary="Remove the caller's webhook",
            ),
            Operation(
                method="POST",
                path=f"{PATH}/test",
                tag="accounts",
                serve=self.test,
                answers={201: (WebhookTest,)},
                summary="Send a test message to the caller's webhook",
            ),
        )

    async def show(self, call: Call) -> Response:
        return Response(await self._api.store.notifications.show_webhook(call.who), media_type=JSON)

    async def set(self, call: Call) -> Response:
        form = await call.body(self._set)
        # The lookup of the name, and an event that is kept.
        self._api.fairness.lookup(call.who)
        self._check_allowed()
        await self._webhooks.check(form.url, call.who.uid)
        answer = await self._api.store.notifications.set_webhook(
            call.who, form.url, list(dict.fromkeys(form.events)), self._api.clock.now()
        )
        return Response(answer, media_type=JSON)

    async def remove(self, call: Call) -> Response:
        self._api.fairness.lookup(call.who)
        answer = await self._api.store.notifications.remove_webhook(call.who, self._api.clock.now())
        return Response(answer, media_type=JSON)

    async def test(self, call: Call) -> Response:
        self._api.fairness.lookup(call.who)
        self._check_allowed()
        number = await self._api.store.notifications.test_webhook(call.who, self._api.clock.now())
        if number is None:
            raise TooManyRequests(
                "you have reached the limit of notifications per hour", "Try again in an hour."
            )
        return Response(msgspec.json.encode(WebhookTest(id=number)), 201, media_type=JSON)

    def _check_allowed(self) -> None:
        if not self._api.notify.webhooks:
            raise BadRequest(
                "this server sends no webhooks", "An operator can change that with ODC_WEBHOOKS."
            )
