"""/v1/accounts and /v1/qos: who may use how many resources."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.answers.accounts import Account, AccountList, Qos, QosList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.limits import Limits, given_fields
from odcd.errors import BadRequest, NotImplementedYet
from odcd.jobs.submission import MAX_KEY_CHARS
from odcd.records.fields import PRINTABLE, Name

Shares = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=PRINTABLE)]
Names = Annotated[list[Name], msgspec.Meta(max_length=10_000)]
Duration = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class EditAccount(_Form, frozen=True, kw_only=True):
    """Only the given fields change."""

    parent: Name | Unset | None = UNSET
    """The parent account; null: none."""
    description: Text | Unset | None = UNSET
    organisation: Text | Unset | None = UNSET
    shares: Shares | Unset = UNSET
    """This account's part of its parent's share, relative to its siblings."""
    default_qos: Name | Unset | None = UNSET
    qos: Names | Unset | None = UNSET
    """The QOS its users may use. null: same as the parent; without a parent, every QOS that is not
    restricted."""
    limits: Limits | Unset = UNSET


class MakeAccount(EditAccount, frozen=True, kw_only=True):
    name: Name


class EditQos(_Form, frozen=True, kw_only=True):
    """Only the given fields change."""

    description: Text | Unset | None = UNSET
    priority: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | Unset = UNSET
    restricted: bool | Unset = UNSET
    """Only accounts and users that list it may use it."""
    deny_on_limit: bool | Unset = UNSET
    """Reject a job that alone exceeds a limit; otherwise it waits until the limit changes."""
    usage_factor: Annotated[float, msgspec.Meta(ge=0, le=1000)] | Unset = UNSET
    """Usage is multiplied by this factor."""
    preempts: Names | Unset = UNSET
    """The QOS whose jobs this QOS may preempt."""
    preempt_mode: Literal["requeue", "cancel"] | Unset = UNSET
    """Whether its preempted jobs are requeued or cancelled."""
    exempt_s: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] | Unset = UNSET
    """Its jobs run at least this long before they are preempted."""
    exempt: Duration | Unset = UNSET
    """Instead of exempt_s, in sbatch's time format."""
    grace_s: Annotated[int, msgspec.Meta(ge=0, le=86_400)] | Unset = UNSET
    """The time between the signal and the kill of a preempted job."""
    grace: Duration | Unset = UNSET
    idle_warn_s: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] | Unset = UNSET
    """Notify the user when a reservation has been idle this long; 0: never check."""
    idle_warn: Duration | Unset = UNSET
    idle_release_s: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] | Unset = UNSET
    """End a reservation that has been idle this long; 0: never."""
    idle_release: Duration | Unset = UNSET
    limits: Limits | Unset = UNSET


class MakeQos(EditQos, frozen=True, kw_only=True):
    name: Name


class AccountRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakeAccount)
        self._edit = msgspec.json.Decoder(EditAccount)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/accounts",
                tag="accounts",
                serve=self.list,
                answers={200: (AccountList,)},
                summary="List accounts, each after its parent",
            ),
            Operation(
                method="POST",
                path="/v1/accounts",
                tag="accounts",
                serve=self.make,
                body=MakeAccount,
                makes=True,
                answers={201: (Account,)},
                summary="Create an account (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/accounts/{account}",
                tag="accounts",
                serve=self.show,
                answers={200: (Account,)},
                summary="Show an account",
            ),
            Operation(
                method="PATCH",
                path="/v1/accounts/{account}",
                tag="accounts",
                serve=self.edit,
                body=EditAccount,
                answers={200: (Account,)},
                summary="Change an account (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/accounts/{account}",
                tag="accounts",
                serve=self.delete,
                answers={200: (Account,)},
                summary="Delete an account that has no jobs and no child accounts (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        accounts = await self._api.store.accounts.list()
        return Response(f'{{"accounts":{accounts}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        return first(await self._api.store.accounts.list(call.part("account")))

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        now = self._api.clock.now()
        answer = await self._api.store.accounts.create(
            call.who,
            form.name,
            given_fields(form, "name"),
            key_of(call),
            digest_of("account", form),
            now,
        )
        return Response(answer, 201, media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        now = self._api.clock.now()
        name = call.part("account")
        answer = await self._api.store.accounts.update(call.who, name, given_fields(form), now)
        self._api.wake()
        return Response(answer, media_type=JSON)

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        answer = await self._api.store.accounts.delete(call.who, call.part("account"), now)
        return Response(answer, media_type=JSON)


class QosRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakeQos)
        self._edit = msgspec.json.Decoder(EditQos)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/qos",
                tag="accounts",
                serve=self.list,
                answers={200: (QosList,)},
                summary="List QOS, the highest priority first",
            ),
            Operation(
                method="POST",
                path="/v1/qos",
                tag="accounts",
                serve=self.make,
                body=MakeQos,
                makes=True,
                answers={201: (Qos,)},
                summary="Create a QOS (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/qos/{qos}",
                tag="accounts",
                serve=self.show,
                answers={200: (Qos,)},
                summary="Show a QOS",
            ),
            Operation(
                method="PATCH",
                path="/v1/qos/{qos}",
                tag="accounts",
                serve=self.edit,
                body=EditQos,
                answers={200: (Qos,)},
                summary="Change a QOS (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/qos/{qos}",
                tag="accounts",
                serve=self.delete,
                answers={200: (Qos,)},
                summary="Delete a QOS that has no jobs (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        return Response(f'{{"qos":{await self._api.store.qos.list()}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        return first(await self._api.store.qos.list(call.part("qos")))

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        self._check_idle(form)
        now = self._api.clock.now()
        answer = await self._api.store.qos.create(
            call.who,
            form.name,
            given_fields(form, "name"),
            key_of(call),
            digest_of("qos", form),
            now,
        )
        return Response(answer, 201, media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        self._check_idle(form)
        now = self._api.clock.now()
        answer = await self._api.store.qos.update(
            call.who, call.part("qos"), given_fields(form), now
        )
        self._api.wake()
        return Response(answer, media_type=JSON)

    def _check_idle(self, form: EditQos) -> None:
        terms = given_fields(form)
        if self._api.dev_server_terminals and (
            terms.get("idle_warn_s") or terms.get("idle_release_s")
        ):
            raise NotImplementedYet(
                "dev servers are shells on the daemon's machine here, so odc cannot check whether "
                "one is idle",
                "Leave --idle-warn and --idle-release out; `odcctl list` shows what runs.",
            )

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        answer = await self._api.store.qos.delete(call.who, call.part("qos"), now)
        return Response(answer, media_type=JSON)


def first(listed: str) -> Response:
    """An answer with the only element of a JSON array."""
    return Response(msgspec.json.encode(msgspec.json.decode(listed)[0]), media_type=JSON)


def key_of(call: Call) -> str | None:
    if call.key is not None and not 1 <= len(call.key) <= MAX_KEY_CHARS:
        raise BadRequest(
            f"the idempotency key has {len(call.key)} characters",
            f"A key has 1 to {MAX_KEY_CHARS} characters.",
        )
    return call.key


def digest_of(what: str, form: msgspec.Struct) -> str:
    """A digest that differs for different requests under the same idempotency key."""
    return hashlib.sha256(what.encode() + b":" + msgspec.json.encode(form)).hexdigest()
