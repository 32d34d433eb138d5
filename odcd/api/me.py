"""/v1/users/me: what users set about themselves."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.jobs.github_keys import check_name


class EditMe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    github_user: str | None
    """The GitHub user whose SSH keys may connect to the caller's dev servers; null: none."""


class Me(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The caller, and what they have set."""

    user: str
    uid: int
    github_user: str | None


class MeRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._edit = msgspec.json.Decoder(EditMe)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="PUT",
                path="/v1/users/me",
                tag="accounts",
                serve=self.edit,
                body=EditMe,
                answers={200: (Me,)},
                summary="Set the caller's GitHub user, whose SSH keys may connect",
            ),
        )

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        if form.github_user is not None:
            check_name(form.github_user)
        # Each is an event that is kept, and wakes the planner.
        self._api.fairness.lookup(call.who)
        answer = await self._api.store.users.set_github_user(
            call.who, form.github_user, self._api.clock.now()
        )
        return Response(answer, media_type=JSON)
