"""The API key that a login stored for a server: used over TCP, and renewed before it expires."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from odcctl.exits import Failure, Refused
from odcctl.http.address import Address
from odcctl.http.keys import Post

RENEW_GAP_S = 60.0
RENEW_BEFORE_S = 300.0
"""A key that expires within this time is renewed first."""


class KeptKey:
    """The stored key, as one command uses it. The modules for a login are imported only when they
    are needed: most commands use a socket and need no key."""

    def __init__(self, post: Post) -> None:
        self.token: str | None = None
        self._post = post
        self._renewed_at: float | None = None
        self._trouble: Failure | None = None

    def load(self, address: Address) -> None:
        """Read the stored key, and renew one that expires soon. A failed renewal is reported only
        if the server then rejects the request."""
        from odcctl.http import keys

        entry = keys.find(address)
        if entry is None or "key" not in entry:
            return
        if keys.is_of_another_profile(entry):
            self._replace(address, entry)
            return
        self.token = str(entry["key"])
        if _left_s(entry.get("expires_at")) < RENEW_BEFORE_S:
            from odcctl.http.login import log_in_again

            self._renewed_at = time.monotonic()
            try:
                self.token = log_in_again(address, entry, self._post)
            except Failure as failure:
                self._trouble = failure

    def renew_rejected(self, address: Address) -> bool:
        """After a 401: whether there is another key to try. At most once a minute, since a new key
        that is rejected will not be accepted later."""
        now_s, renewed_at = time.monotonic(), self._renewed_at
        just_now = renewed_at is not None and now_s < renewed_at + RENEW_GAP_S
        if just_now or address.path is not None:
            return False
        self._renewed_at = now_s
        from odcctl.http import keys
        from odcctl.http.login import may_log_in_automatically

        entry = keys.find(address)
        if entry is None and not may_log_in_automatically(address):
            return False
        if entry is not None and "out" in entry:
            return False
        if (
            entry is not None
            and entry.get("key") not in (None, self.token)
            and not keys.is_of_another_profile(entry)
        ):
            self.token = entry["key"]  # another command renewed it first
            return True
        return self._replace(address, entry or {})

    def explain(self, refusal: Refused) -> Refused:
        """Put the reason why the key was not renewed before the hint of the refusal."""
        if self._trouble is not None:
            trouble = self._trouble
            lines = [
                f"Login with AWS credentials failed: {trouble.message}.",
                trouble.hint,
                refusal.hint,
            ]
            refusal.hint = "\n".join(line for line in lines if line)
        return refusal

    def _replace(self, address: Address, entry: Mapping[str, Any]) -> bool:
        """Log in for a new key. If that fails, forget the old one."""
        from odcctl.http import keys
        from odcctl.http.login import log_in_again

        self._renewed_at = time.monotonic()
        try:
            self.token = log_in_again(address, dict(entry), self._post)
        except Failure as failure:
            self._trouble = failure
            if "key" in entry:
                with suppress(Failure):  # keys.json is not writable: the old key stays there
                    keys.forget(address, str(entry["key"]))
            return False
        return True


def _left_s(expires_at: object) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(str(expires_at)).timestamp() - time.time()
    except ValueError:
        return 0.0
