"""/v1/builds: images that are built of a user's Dockerfile, for reservations that name them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.builds.context import DOCKERFILE, MAX_SENT_BYTES, own_digest
from odcd.builds.reading import Reader
from odcd.errors import BadRequest

MEDIA_TYPE = "application/octet-stream"
DIGEST = re.compile(r"[0-9a-f]{64}")


class BuildQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dockerfile: Annotated[str, msgspec.Meta(pattern=f"^{DOCKERFILE.pattern}$")] = "Dockerfile"
    """Its name in the folder."""
    anew: bool = False
    """Build it again, also if it was built: as when its registry has lost it."""


class ImageBuild(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An image of a context. digest: what a reservation names it by. state: queued until a
    reservation waits for it. image: by digest, once it is completed. step: what it is at. error: of
    one that failed, the last lines of its log. attempts: how often it was begun."""

    id: int
    digest: str
    state: Literal["queued", "building", "completed", "failed"]
    dockerfile: str
    image: str | None
    step: str | None
    error: str | None
    asked_by: str
    asked_at: str
    started_at: str | None
    ended_at: str | None
    attempts: int


class BuildRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = Reader()

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/builds",
                tag="reservations",
                serve=self.put,
                query=BuildQuery,
                raw=MEDIA_TYPE,
                answers={200: (ImageBuild,)},
                summary="Send a Dockerfile's folder (tar, gzip) that reservations may name",
            ),
            Operation(
                method="GET",
                path="/v1/builds/{digest}",
                tag="reservations",
                serve=self.show,
                answers={200: (ImageBuild,)},
                summary="Show how far an image is",
            ),
            Operation(
                method="GET",
                path="/v1/builds/{digest}/log",
                tag="reservations",
                serve=self.log,
                media_type="text/plain",
                summary="The end of what the build of an image wrote",
            ),
        )

    async def put(self, call: Call) -> Response:
        self._api.check_disk()
        query = call.query(BuildQuery)
        target = self._api.build_target()
        # All of it first: who sends slowly keeps nobody waiting.
        sent = await call.raw(MAX_SENT_BYTES)
        context = await self._reader.read(sent, query.dockerfile)
        digest = own_digest(call.who.uid, context.digest)
        told = await self._api.store.builds.put(
            call.who, digest, target, query.dockerfile, context.packed, self._api.clock.now(),
            anew=query.anew,
        )  # fmt: skip
        self._api.wake()
        return Response(told, media_type=JSON)

    async def show(self, call: Call) -> Response:
        digest, target = self._digest(call), self._api.build_target()
        return Response(await self._api.store.builds.get(call.who, digest, target), media_type=JSON)

    async def log(self, call: Call) -> Response:
        digest, target = self._digest(call), self._api.build_target()
        told = await self._api.store.builds.get_log(call.who, digest, target)
        return Response(told, media_type="text/plain; charset=utf-8")

    def _digest(self, call: Call) -> str:
        digest = call.part("digest")
        if not DIGEST.fullmatch(digest):
            raise BadRequest(
                f'"{digest[:80]}" is not the digest of a context',
                "It has 64 hexadecimal digits; POST /v1/builds answers with it.",
            )
        return digest
