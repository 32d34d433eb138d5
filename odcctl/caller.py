"""The caller's user name, for --me. Only a filter: the daemon itself decides who the caller is."""

from __future__ import annotations

import os
import pwd

from odcctl.http.client import ANSWER_TIMEOUT_S, Client


def me(client: Client, timeout_s: float = ANSWER_TIMEOUT_S) -> str:
    """The name of this process's user; over TCP the name that the server has for the caller."""
    if client.addresses[0].path is None:
        return str(client.get("/v1/users/me", timeout_s=timeout_s).json()["user"])
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
