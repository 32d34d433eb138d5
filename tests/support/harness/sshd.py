"""A real OpenSSH server on a port of this machine, as a dev server's is."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.children import free_port

INSTALLED = Path("/usr/sbin/sshd")
USER, UID = "dev", 64_100
LINES = {
    "passwd": (f"{USER}:*:{UID}:{UID}::{{home}}:/bin/sh", "sshd:*:64101:64101::/:/bin/false"),
    "group": (f"{USER}:*:{UID}:", "sshd:*:64101:"),
}
"""The users of a dev server; only this server sees them."""
CONFIG = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowAgentForwarding yes
AllowTcpForwarding yes
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""


class NoServer(Exception):
    """The message says how to install one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    path: Path
    libraries: Path | None = None
    helpers: Path | None = None
    """Where newer packages install the programs that they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    port: int
    folder: Path
    user: str
    host_key: str

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def admit(self, *keys: str) -> None:
        (self.folder / "authorized_keys").write_text("".join(f"{key}\n" for key in keys))
        (self.folder / "authorized_keys").chmod(0o644)


def program() -> Program:
    """Installed, or fetched once; raises NoServer."""
    if INSTALLED.is_file():
        return Program(path=INSTALLED)
    if why := openssh.why_not():
        raise NoServer(why)
    folder = openssh.cached()
    if folder is None:
        raise NoServer(f"there is no sshd at {INSTALLED}: {openssh.HOW}")
    libraries = next(folder.glob("usr/lib/*/libwrap.so.0"), None)
    return Program(
        path=folder / "usr/sbin/sshd",
        libraries=libraries.parent if libraries else None,
        helpers=folder / "usr/lib/openssh",
    )


@contextmanager
def an_sshd(folder: Path) -> Iterator[Sshd]:
    """Accepts no one before admit(). As root it has a user dev; otherwise its only user is the one
    who runs the test. Raises NoServer."""
    found = program()
    port = free_port()
    home = folder / "home"
    home.mkdir()
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / "host_key"],
        check=True,
    )
    config = CONFIG.format(port=port, folder=folder)
    if found.helpers is not None:
        for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")):
            if (found.helpers / name).is_file():
                config += f"{option} {found.helpers / name}\n"
    (folder / "sshd_config").write_text(config)
    argv = [str(found.path), "-D", "-e", "-f", str(folder / "sshd_config")]
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.geteuid() == 0:
        argv, user = _with_users(folder, home, argv), USER
    environment = dict(os.environ)
    if found.libraries is not None:
        environment["LD_LIBRARY_PATH"] = str(found.libraries)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    server = Sshd(
        port=port, folder=folder, user=user,
        host_key=" ".join((folder / "host_key.pub").read_text().split()[:2]),
    )  # fmt: skip
    server.admit()
    try:
        _wait(process, server)
        yield server
    finally:
        # Sessions too: each has its own process.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _with_users(folder: Path, home: Path, argv: list[str]) -> list[str]:
    """In a mount namespace of its own, where /etc knows these users, and /run/sshd is there."""
    os.chown(home, UID, UID)
    for name, lines in LINES.items():
        there = Path("/etc", name).read_text()
        (folder / name).write_text(there + "".join(f"{one.format(home=home)}\n" for one in lines))
    script = (
        'set -e; cd "$1"; shift; for f in passwd group; do mount --bind "$f" "/etc/$f"; done; '
        'mount -t tmpfs none /run; mkdir -m 0755 /run/sshd; exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(folder), *argv]


def _wait(process: subprocess.Popen[bytes], server: Sshd) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            raise NoServer(f"sshd does not run here: {server.log()[-500:]}")
        with socket.socket() as one:
            one.settimeout(1)
            if one.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"sshd does not listen: {server.log()}")
