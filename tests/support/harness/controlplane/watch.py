"""Every change of the API server's pods, in order, also across restarts of the API server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.harness.controlplane.api import Api, Manifest, Refused

PAUSE_S = 0.1
GONE = 410
OnChange = Callable[[float, str, Manifest], None]
"""time.perf_counter() of the observation; ADDED, MODIFIED or DELETED; the object."""


class Watch(threading.Thread):
    """Reports each change from now on. After a gap that the server cannot bridge, the list shows
    first the deleted and then the new objects."""

    def __init__(self, api: Api, path: str, on_change: OnChange, **query: str) -> None:
        super().__init__(name=f"watch {path}", daemon=True)
        self._api = api
        self._path = path
        self._on_change = on_change
        self._query = query
        self._known: dict[str, Manifest] = {}
        self._over = threading.Event()
        self.ready = threading.Event()
        self.failed: BaseException | None = None
        self.lists = 0

    def __enter__(self) -> Watch:
        self.start()
        assert self.ready.wait(30), f"{self._path} cannot be watched: {self.failed}"
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.failed = error
            raise

    def _run(self) -> None:
        version = ""
        while not self._over.is_set():
            try:
                version = version or self._list()
                self.ready.set()
                version = self._follow(version)
            except Refused as refused:
                version = "" if refused.code == GONE else version
                self._over.wait(PAUSE_S)
            except (ConnectionError, httpx.TransportError, ValueError):
                self._over.wait(PAUSE_S)

    def _list(self) -> str:
        listed = self._api.get(self._path, **self._query)
        self.lists += 1
        there = {one["metadata"]["uid"]: one for one in listed["items"]}
        for uid in [uid for uid in self._known if uid not in there]:
            self._report("DELETED", self._known[uid])
        for one in there.values():
            self._report("MODIFIED" if one["metadata"]["uid"] in self._known else "ADDED", one)
        return listed["metadata"]["resourceVersion"]

    def _follow(self, version: str) -> str:
        """Until the server ends it; returns the version to continue at, empty for a new list."""
        query: dict[str, Any] = {"watch": True, "allowWatchBookmarks": True, "timeoutSeconds": 600}
        self._at = version
        try:
            with self._api.stream(
                self._path, resourceVersion=version, **query, **self._query
            ) as lines:
                for line in lines:
                    if self._over.is_set():
                        break
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return "" if event["object"].get("code") == GONE else self._at
                    self._at = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._report(event["type"], event["object"])
        except (httpx.TransportError, ValueError):
            self._over.wait(PAUSE_S)
        return self._at

    def _report(self, kind: str, found: Manifest) -> None:
        uid = found["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = found
        self._on_change(time.perf_counter(), kind, found)
