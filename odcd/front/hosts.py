"""The host names that the daemon accepts over TCP.

Another site can make a browser reach the daemon under that site's name (DNS rebinding); its scripts
could then read the answers. Such a request has the other site in its Host header. Addresses are
always accepted: the attack needs a name, and probes and scrapes use addresses.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from odcd.errors import BadRequest

LOOPBACK = ("localhost", "*.localhost")
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)
_BRACKETED = re.compile(r"\[(.*)\](:[0-9]{1,5})?", re.ASCII)
_PORT = re.compile(r":[0-9]{1,5}$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hosts:
    names: frozenset[str]
    """In lower case; *.NAME stands for every name below NAME."""

    @classmethod
    def of(cls, *groups: Iterable[str]) -> Hosts:
        names = (name.lower().rstrip(".") for group in (LOOPBACK, *groups) for name in group)
        return cls(frozenset(names))

    def check(self, given: list[bytes], http_version: str) -> None:
        """given: the values of all Host headers. Raises BadRequest.

        An HTTP/1.0 request without the header is accepted: some load balancers probe that way, and
        browsers do not.
        """
        if not given and http_version == "1.0":
            return
        if len(given) != 1:
            raise BadRequest(
                f"the request has {len(given)} Host headers", "HTTP/1.1 requires exactly one."
            )
        text = given[0].decode("latin-1")
        if not self.knows(text):
            raise BadRequest(
                f'this daemon does not answer for the host "{text[:100]}"',
                "An operator can add it to ODC_HOSTS.",
            )

    def knows(self, text: str) -> bool:
        """text: NAME or ADDRESS, with or without a port."""
        if _is_address(text):
            return True
        name = _PORT.sub("", text).lower().rstrip(".")
        if name in self.names:
            return True
        parts = name.split(".")
        return any("*." + ".".join(parts[at:]) in self.names for at in range(1, len(parts)))


def _is_address(text: str) -> bool:
    """Whether the text is exactly an address, with or without a port: no zone, and nothing after
    the closing bracket or the port."""
    try:
        if bracketed := _BRACKETED.fullmatch(text):
            IPv6Address(bracketed[1])
        else:
            ip_address(text if text.count(":") > 1 else _PORT.sub("", text))
    except ValueError:
        return False
    return "%" not in text


def parse_hosts(entries: Iterable[str]) -> frozenset[str]:
    """Raises BadRequest for an entry that is not a name."""
    found: set[str] = set()
    for entry in entries:
        name = entry.lower().rstrip(".")
        if not _NAME.fullmatch(name):
            raise BadRequest(
                f'ODC_HOSTS: "{entry[:100]}" is not a host name',
                "For example odc.example.org or *.example.org, without a port.",
            )
        found.add(name)
    return frozenset(found)


def own_names(listen: tuple[str, int] | None, login_url: str | None) -> list[str]:
    """The names of the daemon itself: of this machine, and in the addresses that it is used at."""
    found = [socket.gethostname()]
    if listen is not None:
        found.append(listen[0])
    if login_url is not None and (host := urlsplit(login_url).hostname):
        found.append(host)
    return found
