"""A copy of the API server's objects of one kind, kept up to date by list and watch.

A broken watch resumes where it was. If the server cannot resume it (410), everything is listed
again. The whole list is also read again at regular intervals, whatever the watch reported. While
the server does not answer, the copy stays unchanged: objects that cannot be read are not treated as
deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.bodies import BodyTooLong, lines_of
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.objects import Meta, Object
from odcd.isolation import Isolation, IsolationWatch

log = logging.getLogger(__name__)

PAGE = 500
SMALLER = 8
"""The factor by which pages become smaller when one is too large."""
RELIST_S = 300
SILENCE_S = 90.0
"""Bookmarks arrive every minute; a connection that is silent for longer counts as dead."""
RETRY_S = (0.1, 5.0)
GONE = 410
MAX_PAGE_BYTES = 32 * 1024 * 1024
"""Of one page of a list, unless a single object has more."""


class Kept(Protocol):
    @property
    def metadata(self) -> Meta: ...
    @property
    def key(self) -> str: ...


T = TypeVar("T", bound=Kept)


class _Page(Object):
    metadata: _PageMeta
    items: list[msgspec.Raw]


class _PageMeta(Object):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Event(Object):
    type: str
    object: msgspec.Raw


class _Bookmark(Object):
    metadata: Meta


class _NamedMeta(Object):
    uid: str


class _Named(Object):
    metadata: _NamedMeta


class Expired(Exception):
    """Everything must be listed again: the server no longer has the resource version that we know,
    or the watch cannot be read on."""


class Mirror(Generic[T]):
    def __init__(
        self,
        cluster: Cluster,
        path: str,
        kind: type[T],
        clock: Clock,
        on_change: Callable[[T | None, T | None], None],
        watch: IsolationWatch | None = None,
    ) -> None:
        """on_change: called for every change as (before, after); None: the object does not
        exist. If it fails for one object, the others go on."""
        self._cluster = cluster
        self._path = path
        self._clock = clock
        self._on_change = on_change
        self._decoder = msgspec.json.Decoder(kind)
        self._version = ""
        self._isolation = Isolation[str]("pods", clock, watch)
        self.items: dict[str, T] = {}
        self.synced = False
        """Whether the objects were listed at least once."""
        self.trouble: str | None = "not checked yet"
        """Why the copy may be outdated; None: it is being watched."""

    async def run(self) -> None:
        """Runs until cancelled."""
        pause_s = RETRY_S[0]
        while True:
            try:
                await self.list()
                listed_at = self._clock.monotonic()
                pause_s = RETRY_S[0]
                while self._clock.monotonic() - listed_at < RELIST_S:
                    try:
                        await self._watch()
                        pause_s = RETRY_S[0]
                    except (RunnerDown, ApiRefused) as error:
                        self._note(error)
                        await self._clock.sleep(_patience(error, pause_s))
                        pause_s = min(pause_s * 2, RETRY_S[1])
            except Expired:
                log.info("kubernetes.relist", extra={"what": self._path})
            except (RunnerDown, ApiRefused) as error:
                self._note(error)
                await self._clock.sleep(_patience(error, pause_s))
                pause_s = min(pause_s * 2, RETRY_S[1])

    def _note(self, error: RunnerDown | ApiRefused) -> None:
        self.trouble = error.message
        log.warning("kubernetes.unwatched", extra={"what": self._path, "why": error.message})

    async def list(self) -> None:
        """List all objects again. Raises RunnerDown, ApiRefused, Expired."""
        seen: set[str] = set()
        after, limit = "", PAGE
        while True:
            query: list[tuple[str, str | int]] = [("limit", limit)]
            if after:
                query.append(("continue", after))
            try:
                max_bytes = None if limit == 1 else MAX_PAGE_BYTES
                body = await self._cluster.get(self._path, query, max_bytes=max_bytes)
            except BodyTooLong:
                limit = max(1, limit // SMALLER)
                continue
            except ApiRefused as error:
                if error.status == GONE:
                    raise Expired from error
                raise
            limit = min(limit * 2, PAGE)
            page = msgspec.json.decode(body, type=_Page)
            for raw in page.items:
                item = self._read(raw)
                if isinstance(item, str):
                    seen.add(item)
                    continue
                seen.add(item.key)
                self._put(item)
            after = page.metadata.continue_
            if not after:
                break
        for key in [key for key in self.items if key not in seen]:
            self._drop(key)
        self._version = page.metadata.resource_version
        self.synced = True
        self.trouble = None

    async def _watch(self) -> None:
        """Follow changes until the server ends the watch. Raises RunnerDown, ApiRefused,
        Expired."""
        query = [
            ("watch", "true"), ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version), ("timeoutSeconds", RELIST_S),
        ]  # fmt: skip
        try:
            async with self._cluster.stream(self._path, query, silence_s=SILENCE_S) as answer:
                self.trouble = None
                async for line in lines_of(answer.content.iter_any()):
                    self.take(line)
        except ApiRefused as error:
            if error.status == GONE:
                raise Expired from error
            raise
        except BodyTooLong as error:
            raise Expired from error
        except (ValueError, msgspec.MsgspecError) as error:
            raise RunnerDown(f"a watch of {self._path} broke: {error}") from error

    def take(self, line: bytes) -> None:
        """Process one line of the watch. Raises Expired, ApiRefused, ValueError."""
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "BOOKMARK":
            self._version = msgspec.json.decode(
                event.object, type=_Bookmark
            ).metadata.resource_version
            return
        if event.type == "ERROR":
            details = msgspec.json.decode(event.object, type=Status)
            if details.code == GONE:
                raise Expired
            raise ApiRefused(details.code, details, None)
        item = self._read(event.object)
        if isinstance(item, str):
            if event.type == "DELETED":
                self._drop(item)
            return
        if event.type == "DELETED":
            # Process the last state first: it may be the first to show how the object ended.
            self._put(item)
            self._drop(item.key)
        else:
            self._put(item)
        self._version = item.metadata.resource_version

    def _read(self, raw: msgspec.Raw) -> T | str:
        """The object, or the key of one that cannot be read: it keeps its last readable state."""
        try:
            return self._decoder.decode(raw)
        except (ValueError, msgspec.MsgspecError) as error:
            uid = msgspec.json.decode(raw, type=_Named).metadata.uid
            keys = (key for key, item in self.items.items() if item.metadata.uid == uid)
            key = next(keys, uid)
            self._isolation.put(key, error)
            return key

    def _put(self, item: T) -> None:
        before = self.items.get(item.key)
        if before is not None:
            if before.metadata.resource_version == item.metadata.resource_version:
                return
            if before.metadata.uid != item.metadata.uid:
                # A new object has the same name: the first one is gone.
                self._drop(item.key)
                before = None
        self.items[item.key] = item
        with self._isolation.guard(item.key):
            self._on_change(before, item)

    def _drop(self, key: str) -> None:
        before = self.items.pop(key, None)
        if before is not None:
            with self._isolation.guard(key):
                self._on_change(before, None)
            # The object is gone, so it cannot fail again.
            self._isolation.clear(key)


def _patience(error: RunnerDown | ApiRefused, pause_s: float) -> float:
    if isinstance(error, ApiRefused) and error.retry_after_s is not None:
        return min(error.retry_after_s, RETRY_S[1])
    return pause_s
