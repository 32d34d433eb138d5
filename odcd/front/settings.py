"""The settings of the HTTP front door; see odcd.settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from odcd.errors import BadRequest
from odcd.front.hosts import parse_hosts
from odcd.front.proxies import Proxies, parse_networks
from odcd.variables import read_words

CONNECTIONS = 4096
PER_CLIENT = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    tls_cert: Path | None = None
    """--tls-cert, ODC_TLS_CERT. The certificate of the TCP listener and its chain, PEM. A changed
    file is read again. Default none: plain HTTP."""
    tls_key: Path | None = None
    """--tls-key, ODC_TLS_KEY. The certificate's private key, PEM without a password. Default: the
    certificate's file."""
    proxies: Proxies = field(default_factory=Proxies)
    """ODC_TRUSTED_PROXIES. Addresses or networks of proxies in front of the daemon, separated by
    commas. X-Forwarded-For is only trusted from them, and the limit of connections per address does
    not apply to them. Default none."""
    hosts: frozenset[str] = frozenset()
    """ODC_HOSTS. Additional host names that the daemon accepts over TCP, separated by commas;
    *.NAME stands for every name below NAME. Addresses, localhost, the names in --listen and
    ODC_URL, and the machine's own name are always accepted. Default none."""
    connections: int = CONNECTIONS
    """ODC_CONNECTIONS. The maximum number of client connections; fewer if the hard limit of open
    files is low. Default 4096."""
    per_user: int = PER_CLIENT
    """ODC_CONNECTIONS_PER_USER. The maximum number of connections of one user of this machine, over
    the Unix socket and loopback together. Default 512."""
    per_address: int = PER_CLIENT
    """ODC_CONNECTIONS_PER_ADDRESS. The maximum number of connections of one address of another
    machine over TCP. Default 512."""


def read_front(
    environment: Mapping[str, str], cert: str | None = None, key: str | None = None
) -> FrontSettings:
    """cert, key: from the command line. Raises BadRequest with the setting that is wrong."""
    cert = cert or environment.get("ODC_TLS_CERT") or None
    key = key or environment.get("ODC_TLS_KEY") or None
    if key is not None and cert is None:
        raise BadRequest(
            "--tls-key (ODC_TLS_KEY) needs a certificate", "Give --tls-cert or ODC_TLS_CERT."
        )
    return FrontSettings(
        tls_cert=_path(cert),
        tls_key=_path(key),
        proxies=Proxies(
            parse_networks(read_words(environment, "ODC_TRUSTED_PROXIES"), "ODC_TRUSTED_PROXIES")
        ),
        hosts=parse_hosts(read_words(environment, "ODC_HOSTS")),
        connections=_count(environment, "ODC_CONNECTIONS", CONNECTIONS),
        per_user=_count(environment, "ODC_CONNECTIONS_PER_USER", PER_CLIENT),
        per_address=_count(environment, "ODC_CONNECTIONS_PER_ADDRESS", PER_CLIENT),
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser().absolute()


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isascii() or not text.isdecimal() or not 8 <= int(text) <= 1_000_000:
        raise BadRequest(
            f'{name}="{text[:100]}" is not a number of connections', "Give 8 to 1000000."
        )
    return int(text)
