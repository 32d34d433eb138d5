"""A client that disconnects at once is no error that an operator must look at."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from starlette.types import Message, Scope

from odcd.api.attach import AttachEndpoint
from odcd.api.tunnel import TunnelEndpoint
from odcd.errors import NotAuthenticated
from odcd.records.job import Identity

NOTHING = cast("Any", None)


class Nobody:
    async def identify(self, scope: Mapping[str, Any]) -> Identity:
        raise NotAuthenticated("there is no key")


@pytest.mark.parametrize(
    "endpoint", [AttachEndpoint(NOTHING, Nobody()), TunnelEndpoint(NOTHING, Nobody(), "ssh")]
)
def test_a_refusal_that_nobody_receives_is_no_error(
    endpoint: AttachEndpoint | TunnelEndpoint,
) -> None:
    """Before: an exception, and so an ERROR in the log for each such client."""

    async def receive() -> Message:
        return {"type": "websocket.disconnect", "code": 1006}

    async def send(_: Message) -> None:
        raise OSError("the client has disconnected")

    scope: Scope = {
        "type": "websocket", "path": "/", "query_string": b"", "headers": [],
        "extensions": {"websocket.http.response": {}},
    }  # fmt: skip
    asyncio.run(endpoint(scope, receive, send))
