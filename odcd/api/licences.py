"""/v1/licences: cluster-wide counted licences that jobs use while they run."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.bookings import Licence, LicenceList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation


class SetLicence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    total: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class LicenceRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._set = msgspec.json.Decoder(SetLicence)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/licences",
                tag="licences",
                serve=self.list,
                answers={200: (LicenceList,)},
                summary="List licences",
            ),
            Operation(
                method="PUT",
                path="/v1/licences/{licence}",
                tag="licences",
                serve=self.set,
                body=SetLicence,
                answers={200: (Licence,)},
                summary="Create a licence, or change its total (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/licences/{licence}",
                tag="licences",
                serve=self.delete,
                answers={200: (Licence,)},
                summary="Delete a licence that no job requests (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        licences = await self._api.store.licences.list()
        return Response(f'{{"licences":{licences}}}', media_type=JSON)

    async def set(self, call: Call) -> Response:
        form = await call.body(self._set)
        now = self._api.clock.now()
        licence = await self._api.store.licences.set(
            call.who, call.part("licence"), form.total, now
        )
        self._api.wake()
        return Response(licence, media_type=JSON)

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        licence = await self._api.store.licences.delete(call.who, call.part("licence"), now)
        return Response(licence, media_type=JSON)
