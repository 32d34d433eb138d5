"""/v1/users, and the users and coordinators of an account."""

from __future__ import annotations

import asyncio
import pwd
from typing import Annotated

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.accounts import Names, Shares, digest_of, first, key_of
from odcd.api.answers.accounts import Account, Member, User, UserList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.limits import Limits, given_fields
from odcd.errors import BadRequest
from odcd.records.fields import Name

Uid = Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)]


class EditMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Only the given fields change."""

    partition: Name | None = None
    """Selects the membership: the one for this partition, or null for the one in all partitions."""
    shares: Shares | Unset = UNSET
    """The user's part of the account's share, relative to other users and child accounts."""
    default: bool | Unset = UNSET
    """The account of jobs that name none. The user's first account becomes the default."""
    default_qos: Name | Unset | None = UNSET
    qos: Names | Unset | None = UNSET
    """The QOS the user may use there; null: same as the account."""
    limits: Limits | Unset = UNSET


class AddMember(EditMember, frozen=True, kw_only=True):
    user: Name
    uid: Uid | None = None
    """Needed if neither the daemon's machine nor any job knows the name; only from operators."""


class AddCoordinator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user: Name
    uid: Uid | None = None


class MemberQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partition: Name | None = None
    """The membership for this partition; default: all memberships of the user in the account."""


class UserRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._add = msgspec.json.Decoder(AddMember)
        self._edit = msgspec.json.Decoder(EditMember)
        self._appoint = msgspec.json.Decoder(AddCoordinator)

    def operations(self) -> tuple[Operation, ...]:
        return (*self._of_users(), *self._of_accounts())

    def _of_users(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/users",
                tag="accounts",
                serve=self.list,
                answers={200: (UserList,)},
                summary="List users of accounts, and coordinators",
            ),
            Operation(
                method="GET",
                path="/v1/users/{user}",
                tag="accounts",
                serve=self.show,
                answers={200: (User,)},
                summary="Show a user",
            ),
        )

    def _of_accounts(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/accounts/{account}/users",
                tag="accounts",
                serve=self.add,
                body=AddMember,
                makes=True,
                answers={201: (User,)},
                summary="Add a user to an account (operators, its coordinators)",
            ),
            Operation(
                method="PATCH",
                path="/v1/accounts/{account}/users/{user}",
                tag="accounts",
                serve=self.edit,
                body=EditMember,
                answers={200: (User,)},
                summary="Change a user of an account (operators, its coordinators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/accounts/{account}/users/{user}",
                tag="accounts",
                serve=self.remove,
                query=MemberQuery,
                answers={200: (Member,)},
                summary="Remove a user from an account (operators, its coordinators)",
            ),
            Operation(
                method="POST",
                path="/v1/accounts/{account}/coordinators",
                tag="accounts",
                serve=self.appoint,
                body=AddCoordinator,
                answers={200: (Account,)},
                summary="Let a user change the users of an account (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/accounts/{account}/coordinators/{user}",
                tag="accounts",
                serve=self.dismiss,
                answers={200: (Account,)},
                summary="Remove a coordinator from an account (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        return Response(f'{{"users":{await self._api.store.users.list()}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        return first(await self._api.store.users.list(call.part("user")))

    async def add(self, call: Call) -> Response:
        form = await call.body(self._add)
        answer = await self._api.store.accounts.add_member(
            call.who, call.part("account"), form.user, await _uid(form.user, form.uid),
            _member_fields(form), key_of(call),
            digest_of(f"member:{call.part('account')}", form), self._api.clock.now(),
        )  # fmt: skip
        self._api.wake()
        return Response(answer, 201, media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        user = call.part("user")
        answer = await self._api.store.accounts.update_member(
            call.who, call.part("account"), user, await _uid(user, None), given_fields(form),
            self._api.clock.now(),
        )  # fmt: skip
        self._api.wake()
        return Response(answer, media_type=JSON)

    async def remove(self, call: Call) -> Response:
        query = call.query(MemberQuery)
        answer = await self._api.store.accounts.remove_member(
            call.who, call.part("account"), call.part("user"), query.partition,
            self._api.clock.now(),
        )  # fmt: skip
        return Response(answer, media_type=JSON)

    async def appoint(self, call: Call) -> Response:
        form = await call.body(self._appoint)
        known = await _uid(form.user, form.uid)
        uid = form.uid if known is None else known
        return await self._coordinate(call, form.user, uid, on=True)

    async def dismiss(self, call: Call) -> Response:
        return await self._coordinate(call, call.part("user"), None, on=False)

    async def _coordinate(self, call: Call, user: str, uid: int | None, *, on: bool) -> Response:
        now = self._api.clock.now()
        answer = await self._api.store.accounts.set_coordinator(
            call.who, call.part("account"), user, uid, now, on=on
        )
        return Response(answer, media_type=JSON)


def _member_fields(form: AddMember) -> dict[str, object]:
    """Include the uid only if it was given: the database decides who may give one."""
    return given_fields(form, "user", *(("uid",) if form.uid is None else ()))


async def _uid(name: str, given: int | None) -> int | None:
    """The uid of this name on this machine; None: the machine does not know the name.

    Raises BadRequest when the machine knows the name under another uid than the given one, or
    the given uid under another name.
    """
    # The user database may be slow (LDAP).
    return await asyncio.to_thread(_checked, name, given)


def _checked(name: str, given: int | None) -> int | None:
    try:
        known = pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        known = None
    if given is None or given == known:
        return known
    if known is not None:
        raise BadRequest(
            f"user {name} has uid {known} on the daemon's machine, not {given}",
            "Leave the uid out: it is only for names that the machine does not know.",
        )
    try:
        other = pwd.getpwuid(given).pw_name
    except (KeyError, OverflowError):
        return None
    raise BadRequest(
        f"uid {given} belongs to user {other} on the daemon's machine, not to {name}",
        f"Give {other}, or another uid.",
    )
