"""Find the client's address: that of the connection, or the one a trusted proxy reports."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from odcd.errors import BadRequest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Proxies:
    trusted: tuple[Network, ...] = ()

    def trusts(self, address: str) -> bool:
        found = read_address(address)
        return found is not None and self._trusts(found)

    def _trusts(self, address: Address) -> bool:
        return any(address.version == n.version and address in n for n in self.trusted)

    def client(self, address: str, headers: Headers) -> str:
        """The client's address, for a connection from this one.

        X-Forwarded-For is read from the right, and only as far as trusted proxies wrote it: a
        client can put anything further left.
        """
        if not self.trusted or not self.trusts(address):
            return address
        text = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        for part in reversed(text.decode("latin-1").split(",")):
            found = read_address(part)
            if found is None:
                break
            address = str(found)
            if not self._trusts(found):
                break
        return address


def read_address(text: str) -> Address | None:
    """Parse an address, with or without a port. IPv4 mapped into IPv6 becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        inside, closed, _ = text[1:].partition("]")
        text = inside if closed else ""
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def network_of(address: str) -> str:
    """The unit that counts as one client: an IPv4 address, or an IPv6 /64 network, because one
    person may have all of its addresses."""
    found = read_address(address)
    if found is None:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), False))


def parse_networks(entries: Iterable[str], name: str) -> tuple[Network, ...]:
    """Raises BadRequest with the name of the variable."""
    found: list[Network] = []
    for entry in entries:
        try:
            found.append(ipaddress.ip_network(entry))
        except ValueError as error:
            raise BadRequest(
                f'{name}: "{entry[:100]}" is neither an address nor a network: {error}',
                "For example 10.0.0.7 or 10.0.0.0/24, separated by commas.",
            ) from error
    return tuple(found)
