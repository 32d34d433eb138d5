"""/v1/auth/login, keys and /v1/users/me: API keys for users who prove their identity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.keys import EndedKeys, LoginAnswer, Me, RotatedKey
from odcd.api.http.audited import WHO
from odcd.api.http.context import Api
from odcd.api.http.identity import LOGIN_HINT, PEER, key_of
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import LoginRefused, NotAuthenticated, WrongState
from odcd.login.logins import Proof
from odcd.records.api_keys import new_key
from odcd.records.job import Identity

MAX_BYTES = 32 * 1024


class Login(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    """A presigned GET of sts:GetCallerIdentity, for the STS endpoint that this server uses."""
    headers: dict[str, str]
    """The signed headers: x-odc-server-id (this server's name), and host if it is signed."""
    method: str = "GET"
    github_user: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    """The user's GitHub name, needed if the server only admits members of an organisation."""


class LoginRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._login = msgspec.json.Decoder(Login)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/auth/login",
                tag="keys",
                serve=self.login,
                body=Login,
                answers={201: (LoginAnswer,)},
                public=True,
                summary="Exchange an AWS identity for an API key",
            ),
            Operation(
                method="POST",
                path="/v1/keys/rotate",
                tag="keys",
                serve=self.rotate,
                answers={201: (RotatedKey,)},
                summary="Replace the API key of this request with a new one",
            ),
            Operation(
                method="DELETE",
                path="/v1/keys/current",
                tag="keys",
                serve=self.logout,
                answers={204: ()},
                summary="Log out: end the API key of this request",
            ),
            Operation(
                method="DELETE",
                path="/v1/users/{user}/keys",
                tag="keys",
                serve=self.end_all,
                answers={200: (EndedKeys,)},
                summary="End all API keys and page sessions of a user (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/users/me",
                tag="keys",
                serve=self.me,
                answers={200: (Me,)},
                summary="Show the caller and the API key used",
            ),
        )

    async def login(self, call: Call) -> Response:
        logins = self._api.logins
        if logins is None:
            raise LoginRefused(
                "this server does not accept logins",
                "An operator gives out keys (odcd token), or sets ODC_AWS_ROLES.",
                reason="off",
            )
        form = await call.body(self._login, max_bytes=MAX_BYTES)
        done = await logins.log_in(
            Proof(
                url=form.url, headers=form.headers, method=form.method,
                github_user=form.github_user, address=_address(call),
            )
        )  # fmt: skip
        call.request.scope[WHO] = Identity(
            user=done.user, uid=done.uid, gid=done.uid, operator=False
        )
        answer = LoginAnswer(
            key=done.key.key, prefix=done.key.prefix, expires_at=_iso(done.expires_at),
            user=done.user, uid=done.uid, account=done.account, role=done.role,
        )  # fmt: skip
        return _secret(answer)

    async def rotate(self, call: Call) -> Response:
        old, made = _own_key(call), new_key()
        expires_at = await self._api.store.keys.rotate(old, made, self._api.clock.now())
        if expires_at is None:  # it ended meanwhile
            raise NotAuthenticated("the API key is unknown or has expired", LOGIN_HINT)
        answer = RotatedKey(key=made.key, prefix=made.prefix, expires_at=_iso(expires_at))
        return _secret(answer)

    async def logout(self, call: Call) -> Response:
        await self._api.store.keys.end(_own_key(call), self._api.clock.now())
        return Response(status_code=204)

    async def end_all(self, call: Call) -> Response:
        answer = await self._api.store.keys.end_all(
            call.who, call.part("user"), self._api.clock.now()
        )
        return Response(answer, media_type=JSON)

    async def me(self, call: Call) -> Response:
        who = call.who
        key: Mapping[str, object] = json.loads(
            await self._api.store.keys.get(
                who.uid, key_of(call.request.scope), self._api.clock.now()
            )
        )
        me = {
            "user": who.user, "uid": who.uid, "gid": who.gid, "operator": who.operator, **key,
            "github_user": await self._api.store.users.get_github_user(who.uid),
        }  # fmt: skip
        return Response(msgspec.json.encode(me), media_type=JSON)


def _own_key(call: Call) -> str:
    digest = key_of(call.request.scope)
    if digest is None:
        raise WrongState(
            "the request has no API key: on the socket, the kernel identifies the caller",
            "Call this over TCP with the API key that you want to change.",
        )
    return digest


def _address(call: Call) -> str:
    if PEER in call.request.scope.get("state", {}):
        return "socket"
    client = call.request.client
    return client.host if client else "unknown"


def _secret(answer: msgspec.Struct) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(answer), 201, headers, JSON)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
