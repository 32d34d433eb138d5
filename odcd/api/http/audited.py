"""Write requests to the audit log: every change, and every refused login or request."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from odcd.api.http.identity import PEER, key_of
from odcd.audit.log import AuditLog
from odcd.front.near import ORIGIN, Origin
from odcd.front.proxies import network_of
from odcd.records.job import Identity

READS = frozenset({"GET", "HEAD", "OPTIONS"})
REFUSED = frozenset({401, 403, 429})
FAILED = 400
"""From this status on, the number of log lines per client is limited."""
GONE = 499
"""The status recorded for a request whose client disconnected before the answer."""
REQUEST_ID = b"x-request-id"
WHO = "odc.who"
"""The key of a request's scope for the caller's identity, once it is known."""
READS_ONLY = "odc.reads_only"
"""The key of a request's scope that is set if it changes nothing, whatever its method is."""
_ID = re.compile(rb'^\{"id":(\d{1,19})[,}]')
_CODE = re.compile(rb'"code":"(OD\d{3})"')
_LONGEST_PATH = 300
_process = secrets.token_hex(8)
_count = itertools.count(1)


class Audited:
    """log: None disables the audit log."""

    def __init__(self, log: AuditLog | None) -> None:
        self._log = log

    def answered(
        self, scope: Mapping[str, Any], route: str, who: Identity | None, response: Response | None,
        *, by: str = "",
    ) -> None:  # fmt: skip
        """response: None if the client disconnected. by: set by the page, which uses no API key."""
        if self._log is None:
            return
        method = scope["method"]
        status = GONE if response is None else response.status_code
        if (method in READS or scope.get(READS_ONLY)) and status not in REFUSED:
            return
        who = who or scope.get(WHO)
        request_id = _new_id()
        left_out: int | None = 0
        if status >= FAILED:
            left_out = self._log.refusals.admit(_client(scope, who))
        body = b"" if response is None else bytes(response.body or b"")
        if response is not None:
            response.raw_headers.append((REQUEST_ID, request_id.encode()))
        if left_out is None:
            return
        self._log.note(
            {
                **_asker(scope, who, by),
                "method": method,
                "route": route,
                "path": scope["path"][:_LONGEST_PATH],
                "status": status,
                **_outcome(body, status),
                "request_id": request_id,
                **({"left_out": left_out} if left_out else {}),
            }
        )

    def socket(
        self, scope: Mapping[str, Any], route: str, who: Identity | None, code: str, *, opened: bool
    ) -> None:
        """A terminal or tunnel that was opened or refused, and how it ended."""
        if self._log is None:
            return
        left_out = 0 if opened else self._log.refusals.admit(_client(scope, who))
        if left_out is not None:
            self._log.note(
                {
                    **_asker(scope, who, ""),
                    "method": "WEBSOCKET",
                    "route": route,
                    "path": scope["path"][:_LONGEST_PATH],
                    "opened": opened,
                    "ended": code,
                    "request_id": _new_id(),
                    **({"left_out": left_out} if left_out else {}),
                }
            )


def _new_id() -> str:
    return f"{_process}{next(_count):016x}"


def _client(scope: Mapping[str, Any], who: Identity | None) -> str:
    """The key under which refusals of one client are counted."""
    if who is not None:
        return f"uid {who.uid}"
    peer, client = scope.get("state", {}).get(PEER), scope.get("client")
    if peer is not None:
        return f"uid {peer.uid}"
    return network_of(client[0]) if client is not None else "?"


def _asker(scope: Mapping[str, Any], who: Identity | None, by: str) -> dict[str, Any]:
    state: Mapping[str, Any] = scope.get("state", {})
    peer, origin = state.get(PEER), state.get(ORIGIN)
    client = scope.get("client")
    place: dict[str, Any] = {}
    if peer is not None:
        place = {"socket_uid": peer.uid}
    elif client is not None:
        place = {"address": client[0]}
        if isinstance(origin, Origin) and origin.uid is not None:
            place["local_uid"] = origin.uid
    if by == "":
        by = "socket" if peer is not None else "key" if key_of(scope) is not None else "none"
    return {
        "user": None if who is None else who.user,
        "uid": None if who is None else who.uid,
        "operator": None if who is None else who.operator,
        "by": by,
        "from": place,
    }


def _outcome(body: bytes, status: int) -> dict[str, Any]:
    if status >= 400:
        found = _CODE.search(body[:4096])
        return {"code": found[1].decode()} if found else {}
    made = _ID.match(body[:64])
    return {"id": int(made[1])} if made else {}
