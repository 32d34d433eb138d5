"""Features that moto's EC2 lacks: snapshots take time, volumes are attached, snapshots have
owners, lists have pages, and there are bytes. It is done to the answers that pass by."""

from __future__ import annotations

import math
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
ACCOUNT = "123456789012"
COPY_OF = "vol-ffffffff"
"""EC2's text for the source of a copied snapshot."""
ElementTree.register_namespace("", NAMESPACE)

Params = Mapping[str, str]
Element = ElementTree.Element


class RefusedByEc2(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass
class Ebs:
    """pending_polls: how many descriptions show a new snapshot as pending; math.inf: until it is
    released. creating_polls: likewise, of volumes that are not available yet. page_size: so many
    on a page. folder: where bytes are kept."""

    folder: Path | None = None
    pending_polls: float = 0
    creating_polls: float = 0
    page_size: int | None = None
    attached: set[str] = field(default_factory=set[str])
    stuck: set[str] = field(default_factory=set[str])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    copies: set[str] = field(default_factory=set[str])
    times: dict[str, str] = field(default_factory=dict[str, str])
    """When a volume or snapshot was made, if not now: moto's times are whole seconds."""
    _pending: dict[str, float] = field(default_factory=dict[str, float])
    _creating: dict[str, float] = field(default_factory=dict[str, float])
    _failed: set[str] = field(default_factory=set[str])
    _hidden: dict[str, int] = field(default_factory=dict[str, int])
    lock: threading.RLock = field(default_factory=threading.RLock)

    # -- what a test says -----------------------------------------------------------------------

    def release(self, *ids: str) -> None:
        """These snapshots are completed, these volumes available; none given: all."""
        for waiting in (self._pending, self._creating):
            for id in ids or list(waiting):
                waiting.pop(id, None)

    def delay(self, snapshot: str, polls: float) -> None:
        """This snapshot stays pending for this many descriptions."""
        self._pending[snapshot] = polls

    def fail(self, id: str) -> None:
        """This snapshot, or this volume, ends in error."""
        self.release(id)
        self._failed.add(id)

    def attach(self, volume: str, *, stuck: bool = False) -> None:
        """Only a forced detach works."""
        self.attached.add(volume)
        if stuck:
            self.stuck.add(volume)

    def detach(self, volume: str) -> None:
        self.attached.discard(volume)
        self.stuck.discard(volume)

    def hide(self, id: str, polls: int) -> None:
        """This many descriptions omit it, because EC2 is only eventually consistent."""
        self._hidden[id] = polls

    def path(self, id: str) -> Path:
        """Where the bytes of a volume or snapshot are."""
        assert self.folder is not None, "no bytes are kept"
        return self.folder / id

    def keep_copy(self, source: str, copy: str) -> None:
        if self.folder is not None:
            # With whose files they are.
            subprocess.run(["cp", "-a", self.path(source), self.path(copy)], check=True)

    # -- what passes by -------------------------------------------------------------------------

    def ask(self, action: str, params: Params) -> bool:
        """Before moto is asked. False: it shall not be, for it knows nothing of attachments.
        Raises RefusedByEc2."""
        volume = params.get("VolumeId", "")
        if action == "CreateVolume" and params.get("SnapshotId") in self._pending:
            raise RefusedByEc2("IncorrectState", f"{params['SnapshotId']} is not completed")
        if action == "DeleteVolume" and volume in self.attached:
            raise RefusedByEc2("VolumeInUse", f"{volume} is attached")
        if action == "DetachVolume":
            if volume not in self.attached:
                raise RefusedByEc2("IncorrectState", f"{volume} is 'available'")
            if volume not in self.stuck or params.get("Force") == "true":
                self.detach(volume)
            return False
        return True

    def answer(self, action: str, params: Params, body: bytes) -> bytes:
        root = ElementTree.fromstring(body)
        act: Callable[[Params, Element], None] | None = {
            "CreateVolume": self._volume_made,
            "CreateSnapshot": self._snapshot_made,
            "DeleteVolume": self._deleted,
            "DeleteSnapshot": self._deleted,
            "DescribeVolumes": self._volumes_told,
            "DescribeSnapshots": self._snapshots_told,
        }.get(action)
        if act is None:
            return body
        act(params, root)
        return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)

    def _volume_made(self, params: Params, root: Element) -> None:
        id = text(root, "volumeId")
        if self.creating_polls:
            self._creating[id] = self.creating_polls
        put(root, "status", "creating")
        source = params.get("SnapshotId")
        if source is not None:
            self.keep_copy(source, id)
        elif self.folder is not None:
            self.path(id).mkdir()

    def _snapshot_made(self, params: Params, root: Element) -> None:
        id = text(root, "snapshotId")
        if self.pending_polls:
            self._pending[id] = self.pending_polls
        put(root, "status", "pending")
        put(root, "progress", "0%")
        self.keep_copy(params["VolumeId"], id)

    def _deleted(self, params: Params, root: Element) -> None:
        id = params.get("VolumeId") or params["SnapshotId"]
        self.release(id)
        if self.folder is not None:
            shutil.rmtree(self.path(id), ignore_errors=True)

    def _volumes_told(self, params: Params, root: Element) -> None:
        items = self._seen(root, "volumeSet", "volumeId")
        for item in items:
            id = text(item, "volumeId")
            if id in self.times:
                put(item, "createTime", self.times[id])
            if id in self._failed:
                put(item, "status", "error")
            elif _passes(self._creating, id):
                put(item, "status", "creating")
            elif id in self.attached:
                put(item, "status", "in-use")
        self._page(params, root, "volumeSet", items)

    def _snapshots_told(self, params: Params, root: Element) -> None:
        items = self._seen(root, "snapshotSet", "snapshotId")
        own = "self" in {value for name, value in params.items() if name.startswith("Owner.")}
        for item in list(items):
            id = text(item, "snapshotId")
            owner = self.owners.get(id, ACCOUNT)
            put(item, "ownerId", owner)
            if id in self.times:
                put(item, "startTime", self.times[id])
            if id in self.copies:
                put(item, "volumeId", COPY_OF)
            if own and owner != ACCOUNT:
                items.remove(item)
            elif id in self._failed:
                put(item, "status", "error")
            elif (left := self._pending.get(id)) is not None and _passes(self._pending, id):
                put(item, "status", "pending")
                done = 50 if math.isinf(left) else int(100 * (1 - left / (left + 1)))
                put(item, "progress", f"{done}%")
        self._page(params, root, "snapshotSet", items)

    def _seen(self, root: Element, list_name: str, id_name: str) -> list[Element]:
        items = []
        for item in root.findall(f"{{*}}{list_name}/{{*}}item"):
            id = text(item, id_name)
            if self._hidden.get(id, 0) > 0:
                self._hidden[id] -= 1
            else:
                items.append(item)
        return items

    def _page(self, params: Params, root: Element, name: str, items: Sequence[Element]) -> None:
        holder = root.find(f"{{*}}{name}")
        if holder is None:
            return
        for item in list(holder):
            holder.remove(item)
        at = int(params.get("NextToken", "0"))
        end = len(items) if self.page_size is None else at + self.page_size
        holder.extend(items[at:end])
        if end < len(items):
            put(root, "nextToken", str(end))


def _passes(waiting: dict[str, float], id: str) -> bool:
    """True while polls are left; each call uses one."""
    left = waiting.get(id)
    if left is None:
        return False
    if left <= 1:
        del waiting[id]
    else:
        waiting[id] = left - 1
    return True


def text(item: Element, name: str) -> str:
    return item.findtext(f"{{*}}{name}") or ""


def put(item: Element, name: str, value: str) -> None:
    found = item.find(f"{{*}}{name}")
    if found is None:
        found = ElementTree.SubElement(item, f"{{{NAMESPACE}}}{name}")
    found.text = value
