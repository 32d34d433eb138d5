"""The limits per user, read when a daemon starts; see odcd.settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from odcd.errors import BadRequest

MAX_LIMIT = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessSettings:
    """Operators and root have none of these limits. 0: no limit."""

    requests: int = 200
    """ODC_USER_REQUESTS. Requests per second of one user, averaged over ten seconds. Default 200;
    0: no limit."""
    streams: int = 500
    """ODC_USER_STREAMS. Open event streams, followed logs and long polls of one user. Default 500;
    0: no limit."""
    sockets: int = 200
    """ODC_USER_SOCKETS. Open terminals and tunnels of one user. Default 200; 0: no limit."""
    submits: int = 100_000
    """ODC_USER_SUBMITS. Jobs that one user submits per minute; an array counts as one, and each
    component of a heterogeneous job counts. Default 100000; 0: no limit."""
    pending: int = 2_000_000
    """ODC_USER_PENDING. Pending jobs of one user; each task of an array counts. Default 2000000;
    0: no limit."""
    stored_mib: int = 4096
    """ODC_USER_STORED_MIB. MiB that the submits, updates, holds, releases, requeues and checkpoints
    of one user add to the database per day: jobs, scripts and environments that it does not have
    yet, and old and new values. Default 4096; 0: no limit."""
    sync_mib: int = 1024
    """ODC_USER_SYNC_MIB. MiB that one `odcctl run --sync` may send, also of operators. Default
    1024; 0: no limit."""


def read_fairness(environment: Mapping[str, str]) -> FairnessSettings:
    """Raises BadRequest with the name of an invalid variable. An empty variable is not set."""
    given: dict[str, int] = {}
    for field in fields(FairnessSettings):
        name = f"ODC_USER_{field.name.upper()}"
        text = environment.get(name)
        if not text:
            continue
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= MAX_LIMIT):
            raise BadRequest(
                f'{name}="{text[:100]}" is not a limit', f"Give 1 to {MAX_LIMIT}, or 0 for none."
            )
        given[field.name] = int(text)
    return FairnessSettings(**given)
