"""The caller's name, for --me: a filter only, since the daemon alone decides who a caller is."""

from __future__ import annotations

import os
import pwd


def me() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
