"""The ssh configuration of reservations: a file for each in ~/.odc/ssh, included by one line.

The host is named after the reservation's number, never after a name that a user chose.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from odcctl.exits import Failure
from odcctl.http import private_files as files
from odcctl.http.address import read_config
from odcctl.http.client import Client
from odcctl.http.config import keep
from odcctl.reservation_states import OVER

Reservation = Mapping[str, Any]

USER = "dev"
HOME = f"/home/{USER}"
SSH_CONFIGS = ("~/.ssh/config", "~/.cursor/ssh_config")
"""The file of ssh, which VS Code also runs, and the file of Cursor."""
INCLUDE = "Include ~/.odc/ssh/*.conf"
CHOICE_KEY = "ssh_include"
FORWARD_KEY = "forward_agent"
_KEY = re.compile(r"(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+")


def folder() -> str:
    return os.path.expanduser("~/.odc/ssh")


def config_of(number: int) -> str:
    return f"{folder()}/{number}.conf"


def host_of(number: int, rank: int = 0) -> str:
    return f"odc-{number}-{rank}" if rank else f"odc-{number}"


# -- the files of reservations ----------------------------------------------------------------


def write(client: Client, one: Reservation) -> str:
    """Write the file of this active reservation; return its path. client: has connected to the
    daemon, whose address goes into the file."""
    number = int(one["id"])
    text = [f"# Reservation {number} of odc: written and removed by odcctl.\n"]
    for rank in range(int(one["node_count"])):
        names = host_of(number, rank) + (f" {host_of(number)}-0" if rank == 0 else "")
        pairs = options(client, one, rank)
        text.append(f"Host {names}\n" + "".join(f"    {name} {value}\n" for name, value in pairs))
    path = config_of(number)
    with _locked():
        _pin(number, one, forget=not os.path.exists(path))
        if files.read(path) != "".join(text):
            files.write(path, "".join(text))
    return path


def options(client: Client, one: Reservation, rank: int) -> list[tuple[str, str]]:
    """The options of ssh for one node of the reservation."""
    number = int(one["id"])
    proxy = [*_program(), *_mark(client, number), str(rank)]
    known = f"{folder()}/known_hosts"
    for word in (*proxy, known):
        if not word.isprintable() or '"' in word:
            raise Failure(f"{word!a} cannot be written to an ssh configuration file")
    return [
        ("HostName", host_of(number, rank)),
        ("User", USER),
        # Quoted for the shell that runs it, and for ssh, which expands percent signs.
        ("ProxyCommand", shlex.join(proxy).replace("%", "%%")),
        *_forwarding(one),
        ("HostKeyAlias", f"{host_of(number)}-{rank}"),
        ("UserKnownHostsFile", '"' + known.replace("%", "%%") + '"'),
        ("HashKnownHosts", "no"),
        ("StrictHostKeyChecking", "yes" if _host_keys(one) else "accept-new"),
        ("ServerAliveInterval", "30"),
        ("ServerAliveCountMax", "4"),
    ]


def shared(one: Reservation) -> bool:
    """Whether users other than the owner may connect. All of them are root in the container, so
    each could use an agent that another one forwards."""
    return bool(one.get("secondary_users"))


def forwards(one: Reservation) -> bool | None:
    """Whether ssh forwards the agent: never to a shared dev server, otherwise unless forward_agent
    is false in the config file; then None, and the user's own ssh configuration decides."""
    if shared(one):
        return False
    return None if read_config().get(FORWARD_KEY) is False else True


def _forwarding(one: Reservation) -> list[tuple[str, str]]:
    on = forwards(one)
    return [] if on is None else [("ForwardAgent", "yes" if on else "no")]


def command(
    client: Client, one: Reservation, rank: int = 0, *, agent: bool | None = None
) -> list[str]:
    """The ssh command for one node; with its options, unless ssh's files include ours. agent:
    whether to forward it; None: as forwards() decides."""
    on = forwards(one) if agent is None else agent
    arguments = ["ssh", *({True: ["-A"], False: ["-a"], None: []}[on])]
    if not included():
        arguments += [
            argument
            for name, value in options(client, one, rank)
            for argument in ("-o", f"{name}={value}")
        ]
    return [*arguments, host_of(int(one["id"]), rank)]


def _mark(client: Client, number: int) -> list[str]:
    """Arguments that identify a reservation and its daemon: another may have the same number."""
    return ["--server", str(client.addresses[0]), "ssh-proxy", str(number)]


def remove(client: Client, numbers: Iterable[int]) -> None:
    """Remove the files of reservations of this daemon that are over."""
    there = [
        number
        for number in numbers
        if shlex.join(_mark(client, number)).replace("%", "%%") in files.read(config_of(number))
    ]
    if not there:
        return
    with _locked():
        for number in there:
            with suppress(FileNotFoundError):
                os.unlink(config_of(number))
            _pin(number, {}, forget=True)


def tidy(client: Client, reservations: Iterable[Reservation]) -> None:
    """Remove the files of the reservations that are over."""
    with suppress(OSError):
        remove(client, (int(one["id"]) for one in reservations if one["status"] in OVER))


def keep_up(client: Client, one: Reservation) -> None:
    """Write the reservation's file if ssh can reach it; remove the file if it is over. A full disk
    must not make the calling command fail."""
    tidy(client, [one])
    if one["status"] == "active" and one.get("connect") == "ssh":
        with suppress(OSError):
            write(client, one)


def _pin(number: int, one: Reservation, *, forget: bool) -> None:
    """Pin the reservation's host keys. Without any, ssh keeps the first key that it sees.

    forget: remove the keys of an earlier reservation with this number, even without new ones.
    """
    keys = _host_keys(one)
    if not keys and not forget:
        return
    path = f"{folder()}/known_hosts"
    before = files.read(path)
    lines = [
        line for line in before.splitlines(keepends=True)
        if not line.startswith(f"{host_of(number)}-")
    ]  # fmt: skip
    ranks = range(int(one.get("node_count") or 0))
    hosts = ",".join(f"{host_of(number)}-{rank}" for rank in ranks)
    lines += [f"{hosts} {key}\n" for key in keys]
    if "".join(lines) != before:
        files.write(path, "".join(lines))


def _host_keys(one: Reservation) -> list[str]:
    found = [_KEY.match(str(key)) for key in one.get("host_keys") or ()]
    return [key[0] for key in found if key is not None]


def _program() -> Sequence[str]:
    """The command that runs this odcctl, however it was called."""
    path = os.path.abspath(sys.argv[0])
    if os.path.basename(path) == "odcctl" and os.access(path, os.X_OK):
        return [path]
    return [sys.executable, "-m", "odcctl"]


@contextmanager
def _locked() -> Generator[None]:
    """Lock the folder: several odcctl may write at the same time."""
    os.makedirs(folder(), mode=0o700, exist_ok=True)
    os.chmod(folder(), 0o700)
    with open(f"{folder()}/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# -- the line that includes them --------------------------------------------------------------


def included() -> bool | None:
    """Whether the user had the line added; None if the user has not been asked yet."""
    choice = read_config().get(CHOICE_KEY)
    return choice if isinstance(choice, bool) else None


def include(on: bool) -> list[str]:
    """Add or remove the line, and store the choice; return the files that changed."""
    changed: list[str] = []
    for name in SSH_CONFIGS:
        path = os.path.expanduser(name)
        before = files.read(path)
        kept = [
            line for line in before.splitlines(keepends=True)
            if line.split() != INCLUDE.split()
        ]  # fmt: skip
        after = "".join([f"{INCLUDE}\n", *kept] if on else kept)
        if after != before:
            files.write(path, after)
            changed.append(path)
        elif on and os.stat(path).st_mode & 0o777 != 0o600:
            os.chmod(path, 0o600)
    if included() is not on:
        keep(CHOICE_KEY, on)
    return changed


def links(one: Reservation) -> list[tuple[str, str]]:
    """Links that open a reservation in an editor, once ssh can resolve its name."""
    where = f"vscode-remote/ssh-remote+{host_of(int(one['id']))}{HOME}"
    return [("vs code", f"vscode://{where}"), ("cursor", f"cursor://{where}")]
