"""Records connections and requests that the front door refused in the audit log."""

from __future__ import annotations

from odcd.audit.log import AuditLog
from odcd.front.proxies import network_of
from odcd.front.watch import Refused, Rejected, Watch


class AuditedWatch:
    """Passes every count to the wrapped watch, and logs a limited number of lines per client."""

    def __init__(self, watch: Watch, log: AuditLog) -> None:
        self._watch = watch
        self._log = log

    def connected(self, change: int) -> None:
        self._watch.connected(change)

    def connection_refused(self, reason: Refused, client: str | int = "") -> None:
        self._watch.connection_refused(reason)
        self._note("CONNECT", reason, client)

    def request_rejected(self, reason: Rejected, client: str | int = "") -> None:
        self._watch.request_rejected(reason)
        self._note("UNREAD", reason, client)

    def _note(self, method: str, reason: str, client: str | int) -> None:
        """client: a uid on the Unix socket, or an address."""
        key = f"uid {client}" if isinstance(client, int) else network_of(client) if client else "?"
        left_out = self._log.refusals.admit(key)
        if left_out is None:
            return
        place = {"socket_uid": client} if isinstance(client, int) else {"address": client}
        self._log.note(
            {
                "user": None, "uid": None, "operator": None, "by": "none", "from": place,
                "method": method, "reason": reason, **({"left_out": left_out} if left_out else {}),
            }
        )  # fmt: skip
