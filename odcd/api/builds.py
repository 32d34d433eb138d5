"""/v1/builds: images that are built from users' Dockerfiles, for reservations that name them."""

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


class BuildQuery(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"rebuild": "anew"},
):
    dockerfile: Annotated[str, msgspec.Meta(pattern=f"^{DOCKERFILE.pattern}$")] = "Dockerfile"
    """Its path within the folder."""
    rebuild: bool = False
    """Build again even if the image exists, for example after the registry lost it."""


class ImageBuild(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The build of an image. digest: of the context; reservations refer to it. state: queued until
    a reservation waits for it. image: with its digest, once completed. step: the current step.
    error: if it failed, the last lines of its log. attempts: how often it was started."""

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
                summary="Upload a Dockerfile's folder (tar, gzip) for reservations",
            ),
            Operation(
                method="GET",
                path="/v1/builds/{digest}",
                tag="reservations",
                serve=self.show,
                answers={200: (ImageBuild,)},
                summary="Show the progress of an image build",
            ),
            Operation(
                method="GET",
                path="/v1/builds/{digest}/log",
                tag="reservations",
                serve=self.log,
                media_type="text/plain",
                summary="Show the end of the log of an image build",
            ),
        )

    async def put(self, call: Call) -> Response:
        self._api.check_disk()
        query = call.query(BuildQuery)
        target = self._api.build_target()
        # Read the whole body first, so that a slow sender blocks no one.
        sent = await call.raw(MAX_SENT_BYTES)
        context = await self._reader.read(sent, query.dockerfile)
        digest = own_digest(call.who.uid, context.digest)
        build = await self._api.store.builds.put(
            call.who, digest, target, query.dockerfile, context.packed, self._api.clock.now(),
            rebuild=query.rebuild,
        )  # fmt: skip
        self._api.wake()
        return Response(build, media_type=JSON)

    async def show(self, call: Call) -> Response:
        digest, target = self._digest(call), self._api.build_target()
        return Response(await self._api.store.builds.get(call.who, digest, target), media_type=JSON)

    async def log(self, call: Call) -> Response:
        digest, target = self._digest(call), self._api.build_target()
        text = await self._api.store.builds.get_log(call.who, digest, target)
        return Response(text, media_type="text/plain; charset=utf-8")

    def _digest(self, call: Call) -> str:
        digest = call.part("digest")
        if not DIGEST.fullmatch(digest):
            raise BadRequest(
                f'"{digest[:80]}" is not the digest of a context',
                "It has 64 hexadecimal digits; POST /v1/builds returns it.",
            )
        return digest
