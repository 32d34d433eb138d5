"""The daemon's address: from --server, ODC_SERVER, $ODC_HOME, the config file, or a default.

The first of them that is set is used: a command meant for one daemon never goes to another. Only
the two default sockets are tried in turn.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from odcctl.exits import Unreachable, WrongUsage

if TYPE_CHECKING:
    import ssl

ROOT_HOME = "/var/lib/odc"
ROOT_SOCKET = "/run/odc/odcd.sock"
CONNECT_TIMEOUT_S = 10.0
LOOPBACK = ("localhost", "::1")
ALLOW_HTTP = "ODC_ALLOW_HTTP"
CA_FILE = "ODC_CA_FILE"
TOKEN = "ODC_TOKEN"

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:/?#@\[\]\s]+)(?::(?P<port>[0-9]{1,5}))?")

START_HINT = "Start one with: odcd up"


class Address(NamedTuple):
    """A unix socket (path), or a TCP address (host, port, tls)."""

    path: str | None = None
    host: str = "localhost"
    port: int = 0
    tls: bool = False

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        """The host in the form of a Host header."""
        return f"[{self.host}]" if ":" in self.host else self.host


class Server(NamedTuple):
    addresses: list[Address]
    token: str | None


def find_server(option: str | None) -> Server:
    """Raises WrongUsage if option names a server that ODC_TOKEN is not for."""
    token = os.environ.get(TOKEN)
    named = option or os.environ.get("ODC_SERVER")
    if named:
        address = parse_address(named)
        # Keys are never sent to a socket.
        if option and token and address.path is None:
            check_configured(address, TOKEN, f"Otherwise unset {TOKEN}.")
        return Server([address], token or _config_token(named))
    home = os.environ.get("ODC_HOME")
    if home:
        own = f"{home}/odcd.sock"
        paths = [own, ROOT_SOCKET] if home.rstrip("/") == ROOT_HOME else [own]
        return Server([Address(path) for path in paths], token)
    config = read_config()
    if config.get("server"):
        return Server([parse_address(str(config["server"]))], token or config.get("token"))
    return Server([Address(path) for path in _usual_sockets()], token)


def _usual_sockets() -> list[str]:
    return [os.path.expanduser("~/.odc/odcd.sock"), ROOT_SOCKET]


def check_configured(address: Address, variable: str, otherwise: str) -> None:
    """Keep a value of the environment from a server that only --server names: it may be anyone's.

    Without a configured server, the value is accepted for any. otherwise: the second sentence of
    the hint. Raises WrongUsage if another server is configured.
    """
    where, known = _configured()
    if known is None or str(known).lower() == str(address).lower():
        return
    raise WrongUsage(
        f"{variable} is for {known} ({where}), but --server names {address}; nothing was sent",
        f"If {variable} is for {address}, set ODC_SERVER to that address. {otherwise}",
    )


def _configured() -> tuple[str, Address | None]:
    """Where a TCP server is configured (ODC_SERVER, else the config file), and its address."""
    for where in ("ODC_SERVER", config_path()):
        text = os.environ.get(where) if where == "ODC_SERVER" else read_config().get("server")
        address = parse_address(str(text)) if text else None
        if address is not None and address.path is None:
            return where, address
    return "", None


def parse_address(text: str) -> Address:
    for scheme, tls in (("http://", False), ("https://", True)):
        if text.startswith(scheme):
            rest = text[len(scheme) :].rstrip("/")
            match = _AUTHORITY.fullmatch(rest)
            port = int(match["port"] or (443 if tls else 80)) if match else 0
            if match is None or not 0 < port < 65536:
                raise WrongUsage(
                    f'"{text}" is not a server address',
                    "Write http://HOST:PORT, https://HOST or the path of a socket.",
                )
            return Address(None, match["host"].strip("[]"), port, tls)
    return Address(text.removeprefix("unix:"))


def is_safe(address: Address) -> bool:
    """Whether the connection stays on this machine or is encrypted."""
    host = address.host
    return address.path is not None or address.tls or host in LOOPBACK or _is_127(host)


def _is_127(host: str) -> bool:
    return host.startswith("127.") and host.replace(".", "").isdecimal()


def warn_of_clear_text(address: Address) -> None:
    """Warn before a key is sent over a network unencrypted; ODC_ALLOW_HTTP=1 disables that."""
    if is_safe(address) or os.environ.get(ALLOW_HTTP, "0") not in ("", "0"):
        return
    sys.stderr.write(
        f"odcctl: {address} has no TLS: others on the network can read and use your API key\n"
        f"  Use an https:// address, or set {ALLOW_HTTP}=1 if you trust the network.\n"
    )


def config_path() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return f"{base}/odcctl/config.toml"


def read_config() -> dict[str, Any]:
    """The config file's values; {} if there is no readable file."""
    path = config_path()
    try:
        with open(path, "rb") as file:
            import tomllib  # only needed with a config file

            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except ValueError as error:
        raise WrongUsage(f"{path} is not valid TOML: {error}") from None


def _config_token(server: str) -> str | None:
    config = read_config()
    # A token is sent only to the server beside it in the file. Without one, it is for the server of
    # the environment.
    known = config.get("server") or os.environ.get("ODC_SERVER") or server
    return config.get("token") if known == server else None


def connect(addresses: list[Address]) -> tuple[socket.socket, Address]:
    """Connect to the first address that accepts. Raises Unreachable, which lists all of them."""
    troubles: list[OSError] = []
    for address in addresses:
        try:
            return _open(address), address
        except OSError as error:
            troubles.append(error)
    raise unreachable(addresses, troubles)


def unreachable(
    addresses: list[Address], troubles: list[OSError], *, ask_network: bool = True
) -> Unreachable:
    """troubles: of the addresses, in their order. ask_network: also look for a server of the
    network, which takes up to a second."""
    tried = "\n".join(
        f"tried {address}: {_trouble(error)}"
        for address, error in zip(addresses, troubles, strict=True)
    )
    if addresses[0].path is None:
        return Unreachable("no daemon answers", tried)
    other = _of_network(addresses) if ask_network else ""
    return Unreachable("no daemon answers", f"{tried}\n{START_HINT}{other}")


def _of_network(addresses: list[Address]) -> str:
    """A line about a server of the network, if no other one is configured."""
    if [address.path for address in addresses] != _usual_sockets():
        return ""
    from odcctl.http.discovery import find_in_network  # needed only if there is no daemon

    url = find_in_network()
    return f"\nOr use the server of your network: odcctl config set server {url}" if url else ""


def _trouble(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such socket"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, PermissionError):
        return "belongs to another user"
    return _reason(error)


def _open(address: Address) -> socket.socket:
    if address.path is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_TIMEOUT_S)
            connection.connect(address.path)
        except BaseException:
            connection.close()
            raise
        return connection
    connection = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S)
    return _encrypted(connection, address) if address.tls else connection


def _encrypted(connection: socket.socket, address: Address) -> socket.socket:
    try:
        return tls_context().wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


def tls_context() -> ssl.SSLContext:
    """A context that trusts ODC_CA_FILE, else `ca_file` of the config file, else the system's CAs.

    Raises WrongUsage when the file cannot be used.
    """
    import ssl  # takes 10 ms, needed only for https

    named = os.environ.get(CA_FILE) or read_config().get("ca_file")
    path = os.path.expanduser(str(named)) if named else None
    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        raise WrongUsage(
            f'the CA file "{path}" cannot be used: {_reason(error)}',
            f"{CA_FILE}, or ca_file of the config file, names a file of PEM certificates.",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _reason(error: Exception) -> str:
    """The cause of the error; for an error of ssl, without the place in OpenSSL's source."""
    why = getattr(error, "verify_message", "")
    if why:
        return f"its certificate is not trusted: {why}"
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
