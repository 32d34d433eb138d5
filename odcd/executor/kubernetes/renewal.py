"""Tokens from a kubeconfig's exec plugin (`aws eks get-token`): renewed before they expire.

kubernetes_asyncio only runs the plugin once, at the start.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from odcd.clock import Clock

EARLY_S = 300.0
"""The time before expiry, the same as in kubernetes_asyncio."""
PAUSE_S = 5.0
"""The minimum between two tries: a plugin that fails, or returns an expired token, is not run for
every request."""


class Renewal:
    """A configuration's refresh_api_key_hook: called before each request."""

    def __init__(self, loader: Any, clock: Clock) -> None:
        """loader: kubernetes_asyncio's KubeConfigLoader, which has read the kubeconfig."""
        self._loader = loader
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._tried_s = -PAUSE_S

    async def __call__(self, configuration: Any) -> None:
        if not self._is_due():
            return
        async with self._one_at_a_time:
            if not self._is_due():
                return
            self._tried_s = self._clock.monotonic()
            # On failure it logs the reason; the old token is kept, because it may still be valid.
            if await self._loader.load_from_exec_plugin():
                configuration.api_key["BearerToken"] = self._loader.token

    def _is_due(self) -> bool:
        ends_at: datetime | None = getattr(self._loader, "exec_plugin_expiry", None)
        if ends_at is None:
            return False
        left_s = (ends_at - self._clock.now()).total_seconds()
        return left_s < EARLY_S and self._clock.monotonic() - self._tried_s >= PAUSE_S
