"""The runner: forks jobs, watches them until they end, and outlives the daemon.

odcd.runner.launch starts it. It must run from the same files as the daemon, start quickly and stay
small. So it is started without site-packages and imports only the standard library. It imports
everything before the first job, so an upgrade of its files does not change a runner that is already
running.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import contextlib
import fcntl
import gc
import os
import signal
import socket
import time

from odcd import __version__
from odcd.runner import cgroup, children, kernel, protocol, rules
from odcd.runner.folders import make_folder
from odcd.runner.keeping import Keeping
from odcd.runner.limits import Limits
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.memory import Memory
from odcd.runner.recovery import Recovery
from odcd.runner.roster import Roster
from odcd.runner.server import Server
from odcd.runner.steps import recovery as steps_recovery
from odcd.runner.texts import Texts
from odcd.runner.uids import Users

EXIT_OTHER_LIVES = 3
IDLE_S = 600.0
"""A runner without a daemon and without facts to report ends after this time."""
KEPT_OUTPUT_S = 7 * 86400.0
"""How long odcd keeps output (odcctl run) after the last write to it."""
SWEEP_S = 300.0
"""How often the runner looks for such output, and for scripts of ended jobs."""
_FOLDERS = {
    "members": 0o700, "scripts": 0o711, "output": 0o700, "terminals": 0o700,
    "steps": 0o700, "hooks": 0o700,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="odcd.runner", description="Fork jobs and outlive the daemon."
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--owner", default=f"{os.geteuid()}:{os.getegid()}", metavar="UID:GID")
    options = parser.parse_args()
    owner_uid, owner_gid = map(int, options.owner.split(":"))
    ready, started = os.pipe()
    if os.fork() != 0:
        # The launcher waits for this process, which exits when the runner accepts connections or
        # failed.
        os.close(started)
        with open(ready, "rb") as pipe:
            answer = pipe.read()
        sys.stderr.write(answer[1:].decode(errors="replace"))
        return answer[0] if answer else 1
    os.close(ready)
    os.setsid()
    try:
        runner = Runner(options.dir, owner_uid, owner_gid)
    except BlockingIOError:
        os.write(started, bytes([EXIT_OTHER_LIVES]))
        return 0
    except Exception as error:
        os.write(started, b"\1" + f"{type(error).__name__}: {error}"[:1000].encode())
        raise
    os.write(started, b"\0")
    os.close(started)
    runner.run()
    return 0


class Runner:
    def __init__(self, run_dir: Path, owner_uid: int, owner_gid: int) -> None:
        """Prepare everything and accept connections. Raises BlockingIOError when another runner
        lives."""
        make_folder(run_dir, 0o711)
        for name, mode in _FOLDERS.items():
            make_folder(run_dir / name, mode)
        self._dir = run_dir
        # Only for the runner: anyone who can read it could hold a lock that keeps the runner from
        # starting.
        lock = os.open(
            run_dir / protocol.LOCK_NAME, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._lock = os.fdopen(lock, "a+")
        os.fchmod(lock, 0o600)
        # Not flock: this lock belongs to this process only, even if its children inherit the file.
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()
        self._log = Log(run_dir / "runner.log")
        self._loop = Loop()
        self._memory = Memory(run_dir)
        self._texts = Texts(run_dir, self._log, switch_user=os.geteuid() == 0)
        cgroups = cgroup.Cgroups(run_dir)
        self._log.info("runner.started", pid=os.getpid(), version=__version__, uid=os.geteuid(),
                       cgroups=cgroups.statement)  # fmt: skip
        limits = Limits()
        self._rules = rules.Reader(run_dir)
        users = Users(self._rules, owner_uid)
        self._roster = Roster(
            run_dir, self._loop, self._log, self._memory, self._texts, cgroups, limits, users
        )
        # Before the members: a job ends only after its steps.
        steps_recovery.recover(self._roster.steps, self._loop, same_boot=not self._memory.fresh)
        Recovery(self._roster, self._loop, self._log, same_boot=not self._memory.fresh).run()
        about = {"pid": os.getpid(), "odc": __version__, "cgroups": cgroups.statement,
                 "hooks": True}  # fmt: skip
        self._server = Server(self._loop, self._log, self._roster, self._memory, self._texts,
                              owner_uid=owner_uid, users=users, about=about)  # fmt: skip
        self._socket = run_dir / protocol.SOCKET_NAME
        self._owner = owner_uid, owner_gid
        self._listen()
        self._keeping = Keeping(run_dir / "output", self._log)
        self._busy_at = time.monotonic()
        self._ending = False
        # Processes of a killed shim become children of the runner, not of init.
        kernel.become_subreaper()
        self._ignore_signals()
        limits.raise_own()

    def _listen(self) -> None:
        self._server.listen(self._socket, *self._owner)
        self._identity = self._socket.stat().st_ino

    def _ignore_signals(self) -> None:
        wake_read, wake_write = socket.socketpair()
        wake_write.setblocking(False)
        signal.set_wakeup_fd(wake_write.fileno())
        self._wake = wake_read, wake_write
        self._loop.watch(wake_read, self._woken)
        signal.signal(signal.SIGTERM, self._end)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)

    def _woken(self, _: int) -> None:
        self._wake[0].recv(64)

    def _end(self, *_: object) -> None:
        self._ending = True

    def run(self) -> None:
        """Run until a signal or a request ends it, or until idle for IDLE_S. Running jobs then
        continue below their shims."""
        gc.collect()
        gc.freeze()
        next_look = 0.0
        while not (self._ending or self._server.quitting):
            try:
                self._loop.turn(wait=not self._roster.starts.can_start)
                self._roster.starts.start_some()
                self._roster.facts.send_news()
                children.reap()
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + 1.0
                    self._look_after()
            except Exception:
                # A bug in one request must not stop the other jobs.
                self._log.exception("runner.error")
        self._log.info("runner.ended")
        if self._is_ours():
            self._socket.unlink(missing_ok=True)

    def _look_after(self) -> None:
        self._rules.refresh()
        members = self._roster.attempts.members()
        self._roster.facts.look_after(members)
        if not self._roster.starts.can_start:
            self._roster.stock()
        self._roster.steps.look_after()
        if members or self._server.connections or self._roster.steps.live_attempts():
            self._busy_at = time.monotonic()
        if time.monotonic() - self._busy_at > IDLE_S:
            self._ending = True
        if not self._has_lock():
            # The folder was removed, and another runner may use a new one. No one can reach this
            # one.
            self._ending = self._ending or not any(m.live for m in members)
        elif not self._is_ours():
            self._listen()
        live = {str(m.key) for m in members if m.live}
        self._keeping.look_after(live, self._rules.rules.output_total_mib)
        self._sweep({str(m.key) for m in members})

    def _has_lock(self) -> bool:
        with contextlib.suppress(OSError):
            path = self._dir / protocol.LOCK_NAME
            return path.stat().st_ino == os.fstat(self._lock.fileno()).st_ino
        return False

    def _is_ours(self) -> bool:
        with contextlib.suppress(OSError):
            return self._socket.stat().st_ino == self._identity
        return False

    _swept_at = 0.0

    def _sweep(self, known: set[str]) -> None:
        now = time.monotonic()
        if now - self._swept_at < SWEEP_S:
            return
        self._swept_at = now
        old = time.time() - KEPT_OUTPUT_S
        with contextlib.suppress(OSError):
            begun = [m for m in self._roster.attempts.members() if m.live and m.state != "queued"]
            scripts = {m.script for m in begun}
            # A member of an earlier version has no script recorded.
            if None not in scripts:
                self._texts.sweep({script for script in scripts if script})
            for entry in os.scandir(self._dir / "output"):
                if entry.name.rpartition(".")[0] not in known and entry.stat().st_mtime < old:
                    os.unlink(entry.path)


if __name__ == "__main__":
    sys.exit(main())
