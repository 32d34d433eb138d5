"""The caller's name, for --me: a filter only, since the daemon alone decides who a caller is."""

from __future__ import annotations

import os
import pwd

from odcctl.http.client import ANSWER_TIMEOUT_S, Client


def me(client: Client, timeout_s: float = ANSWER_TIMEOUT_S) -> str:
    """On this machine as it knows the caller; elsewhere as the server does."""
    if client.addresses[0].path is None:
        return str(client.get("/v1/users/me", timeout_s=timeout_s).json()["user"])
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
