"""Which daemon to speak to: --server, ODC_SERVER, $ODC_HOME, the config file, the usual places.

The first that is set decides: a command meant for one daemon never falls through to another.
Only the two usual places are tried in turn.
"""

from __future__ import annotations

import os
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
        """The host as a request names it."""
        return f"[{self.host}]" if ":" in self.host else self.host


class Server(NamedTuple):
    addresses: list[Address]
    token: str | None


def find_server(option: str | None) -> Server:
    """Raises WrongUsage when option names another server than the one that ODC_TOKEN is for."""
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
    usual = [os.path.expanduser("~/.odc/odcd.sock"), ROOT_SOCKET]
    return Server([Address(path) for path in usual], token)


def check_configured(address: Address, variable: str, otherwise: str) -> None:
    """A server that only --server names may be anyone's: it gets no value of the environment that
    is for the configured server. With no server configured, nothing says that it is for another.

    otherwise: the second sentence of the hint. Raises WrongUsage.
    """
    where, known = _configured()
    if known is None or str(known).lower() == str(address).lower():
        return
    raise WrongUsage(
        f"{variable} is for {known} ({where}), but --server names {address}; nothing was sent",
        f"If {variable} is for {address}, set ODC_SERVER to that address. {otherwise}",
    )


def _configured() -> tuple[str, Address | None]:
    """The TCP server of the environment, else of the config file, and which of them names it."""
    for where in ("ODC_SERVER", config_path()):
        text = os.environ.get(where) if where == "ODC_SERVER" else read_config().get("server")
        address = parse_address(str(text)) if text else None
        if address is not None and address.path is None:
            return where, address
    return "", None


def parse_address(text: str) -> Address:
    for scheme, tls in (("http://", False), ("https://", True)):
        if text.startswith(scheme):
            host, colon, port = text[len(scheme) :].rstrip("/").rpartition(":")
            if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
                raise WrongUsage(
                    f'"{text}" is not a server address',
                    "Write http://HOST:PORT, https://HOST:PORT or the path of a socket.",
                )
            return Address(None, host.strip("[]"), int(port), tls)
    return Address(text.removeprefix("unix:"))


def is_safe(address: Address) -> bool:
    """Nobody on the way can read what is sent."""
    host = address.host
    return address.path is not None or address.tls or host in LOOPBACK or _is_127(host)


def _is_127(host: str) -> bool:
    return host.startswith("127.") and host.replace(".", "").isdecimal()


def warn_of_clear_text(address: Address) -> None:
    """Before a key is sent where others can read it; ODC_ALLOW_HTTP=1 silences that."""
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
    """The config file's values; keys: server, token. An absent file is an empty one."""
    path = config_path()
    try:
        with open(path, "rb") as file:
            import tomllib  # only those who have a config file pay for it

            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except ValueError as error:
        raise WrongUsage(f"{path} is not valid TOML: {error}") from None


def _config_token(server: str) -> str | None:
    config = read_config()
    # A token goes to the server it stands beside, never to another one. If it stands alone, it is
    # for the server of the environment.
    known = config.get("server") or os.environ.get("ODC_SERVER") or server
    return config.get("token") if known == server else None


def connect(addresses: list[Address]) -> tuple[socket.socket, Address]:
    """Connect to the first that answers. Raises Unreachable, naming all that were tried."""
    troubles: list[str] = []
    for address in addresses:
        try:
            return _open(address), address
        except FileNotFoundError:
            troubles.append(f"{address}: no such socket")
        except ConnectionRefusedError:
            troubles.append(f"{address}: nothing listens there")
        except PermissionError:
            troubles.append(f"{address}: belongs to another user")
        except OSError as error:
            troubles.append(f"{address}: {_reason(error)}")
    tried = "\n".join(f"tried {trouble}" for trouble in troubles)
    hint = f"{tried}\n{START_HINT}" if addresses[0].path is not None else tried
    raise Unreachable("no daemon answers", hint)


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
        return _tls().wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


def _tls() -> ssl.SSLContext:
    """Trusts ODC_CA_FILE, else `ca_file` of the config file, else the system's certificates.

    Raises WrongUsage when the file cannot be used.
    """
    import ssl  # 10 ms, for https alone

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
    """Of ssl's errors the part that says why, without where in OpenSSL it was noticed."""
    why = getattr(error, "verify_message", "")
    if why:
        return f"its certificate is not trusted: {why}"
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
