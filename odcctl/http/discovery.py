"""A server of the network: the host `odc` in a search domain of this machine.

Only its address is suggested: an attacker who controls the network also controls its names. So
nothing is sent to such a server before the user has chosen it.
"""

from __future__ import annotations

import os
import socket
import threading

HOST = "odc"
PATIENCE_S = 1.0
MAX_DOMAINS = 6
RESOLVER = "/etc/resolv.conf"


def find_in_network() -> str | None:
    """The URL of the server; None: there is none, or the answer took too long."""
    domains = search_domains()
    found: list[str] = []
    if not domains:
        return None
    # A lookup cannot be interrupted, and may take as long as the resolver waits.
    lookup = threading.Thread(target=_look_up, args=(domains, found), daemon=True)
    lookup.start()
    lookup.join(PATIENCE_S)
    return found[0] if found else None


def search_domains() -> list[str]:
    """Those of LOCALDOMAIN, else of resolv.conf, as the C library reads them."""
    named = os.environ.get("LOCALDOMAIN")
    if named is not None:
        return named.split()[:MAX_DOMAINS]
    domains: list[str] = []
    try:
        with open(RESOLVER, encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                if words and words[0] in ("search", "domain"):
                    domains = words[1:]
    except OSError:
        return []
    return domains[:MAX_DOMAINS]


def _look_up(domains: list[str], found: list[str]) -> None:
    for domain in domains:
        name = f"{HOST}.{domain.strip('.').lower()}"
        try:
            socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            continue
        found.append(f"https://{name}")
        return
