"""Make sure that a runner runs. Called by the daemon, or as root by its keeper."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from odcd.runner import protocol, socket_paths
from odcd.runner.folders import make_folder

WAIT_S = 20.0
_OTHER_LIVES = 3


class LaunchFailed(Exception):
    """No runner runs and none could be started; the text gives the reason."""


def connect(run_dir: Path) -> socket.socket:
    """A blocking connection to the runner of run_dir. Raises OSError when none accepts."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        socket_paths.connect(sock, run_dir / protocol.SOCKET_NAME)
    except BaseException:
        sock.close()
        raise
    return sock


def launch_runner(
    run_dir: Path, owner_uid: int, owner_gid: int, *, wait_s: float = WAIT_S,
    adapt: Callable[[Sequence[str]], list[str]] = list,
) -> None:  # fmt: skip
    """Return when the runner of run_dir accepts connections; start one if none lives.

    owner: the user whose daemon may command it. wait_s: how long to wait for a runner that is
    starting. adapt: changes the command, for a caller whose limits must not be inherited. Raises
    LaunchFailed.
    """
    if _accepts(run_dir):
        return
    try:
        make_folder(run_dir, 0o711)
    except OSError as error:
        raise LaunchFailed(f"the runner did not start: {error.strerror}: {run_dir}") from error
    program = Path(__file__).with_name("__main__.py")
    command = [
        sys.executable, "-I", "-S", "-B", "-X", "utf8", str(program),
        "--dir", str(run_dir), "--owner", f"{owner_uid}:{owner_gid}",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            adapt(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            cwd="/",
            # Not the daemon's umask, which denies access to all others.
            umask=0o022,
            timeout=wait_s + WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchFailed(f"the runner did not start: {error}") from error
    if done.returncode == 0:
        return
    if done.returncode == _OTHER_LIVES:
        # Another launch is in progress; that runner holds the lock and will accept connections.
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if _accepts(run_dir):
                return
            time.sleep(0.02)
        raise LaunchFailed(
            f"a runner has locked {run_dir / protocol.LOCK_NAME} and does not answer"
        )
    text = done.stderr.decode(errors="replace").strip()
    raise LaunchFailed(f"the runner did not start: {text or f'exit code {done.returncode}'}")


def _accepts(run_dir: Path) -> bool:
    """Whether a runner answers. A connection alone proves nothing: forks of a dead runner may hold
    its socket."""
    hello = protocol.encode({"id": 1, "op": "hello", "versions": list(protocol.VERSIONS)})
    with contextlib.suppress(OSError), connect(run_dir) as sock:
        sock.settimeout(WAIT_S)
        sock.sendall(hello)
        return bool(sock.recv(4096))
    return False
