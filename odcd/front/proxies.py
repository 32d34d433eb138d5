"""Where a request comes from: the address of the connection, or what a trusted proxy says."""

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

        X-Forwarded-For is read from its right end, and only as far as trusted proxies wrote it: a
        client can put anything to the left of that.
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
    """An address, with a port or without; an IPv4 address that IPv6 carries as itself."""
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
    """What counts as one client: an IPv4 address, an IPv6 network of 64 bits, which one person
    has."""
    found = read_address(address)
    if found is None:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), False))


def parse_networks(words: Iterable[str], name: str) -> tuple[Network, ...]:
    """Raises BadRequest naming the variable."""
    found: list[Network] = []
    for word in words:
        try:
            found.append(ipaddress.ip_network(word))
        except ValueError as error:
            raise BadRequest(
                f'{name}: "{word[:100]}" is neither an address nor a network: {error}',
                "For example 10.0.0.7 or 10.0.0.0/24, separated by commas.",
            ) from error
    return tuple(found)
