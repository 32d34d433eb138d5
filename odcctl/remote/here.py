"""The part of salloc and sbcast that happens on the machine where they are called."""

from __future__ import annotations

import json
import os
import posix
import signal
from typing import TYPE_CHECKING, Any

from odcctl.remote import exchange, program

if TYPE_CHECKING:
    from odcctl.remote.upstream import Upstream

PREFIXES = ("SLURM", "ODC_")
VARIABLES = frozenset({
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPU_DEVICE_ORDINAL", "MASTER_ADDR", "MASTER_PORT",
    "PWD",
})  # fmt: skip
"""Variables that the server may set: it may be of another user, and others can load code."""
NO_SOURCE = 255
"""sbcast's exit code for a source that it cannot read."""
PIECE_BYTES = 1 << 20


def act(name: str, argv: list[str], kind: bytes, content: bytes, upstream: Upstream) -> int | None:
    """Obey a frame, but only as the command line says: the server may belong to another user.

    Returns the command's exit code; None: it goes on.
    """
    if kind == b"u":
        path = content.decode()
        if name == "sbcast" and path in map(program.whole, argv):
            return _send_source(path, upstream)
    else:
        order = json.loads(content)
        if kind == b"k" and name == "sbcast" and is_copy_of(order, argv):
            return copy_file(order)
        if kind == b"c" and name == "salloc" and is_command_of(order, argv):
            return _run_here(order, upstream)
    text = f"{name}: error: the server asked for something else than the command line\n"
    program.write(2, text.encode())
    return 1


def _run_here(order: dict[str, Any], upstream: Upstream) -> int:
    """Run the user's command or shell on the allocation; release it afterwards."""
    code = 1
    try:
        code = run_child(order)
    finally:
        if not order["quiet"]:
            text = f"salloc: Relinquishing job allocation {order['job']}\n"
            program.write(2, text.encode())
        body = f'{{"exit_code":{code & 255}}}'.encode()
        try:
            upstream.insist(order["release"], body)
        except exchange.Trouble as trouble:
            program.write(2, f"salloc: error: {trouble}\n".encode())
    return code


def _send_source(path: str, upstream: Upstream) -> int | None:
    if upstream.has_source:
        return None
    source = open_source(path)
    if source is None:
        return NO_SOURCE
    upstream.send_file(source, header_of(source))
    return None


def run_child(order: dict[str, Any]) -> int:
    environment = {**posix.environ}
    for name, value in order["env"].items():
        if name.startswith(PREFIXES) or name in VARIABLES:
            environment[name.encode()] = value.encode()
    shell = environment.get(b"SHELL", b"/bin/sh").decode(errors="surrogateescape")
    argv = order["argv"] or [shell]
    kept = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGQUIT)}
    pid = posix.fork()
    if pid == 0:
        for number in kept:
            signal.signal(number, signal.SIG_DFL)
        try:
            if order["chdir"]:
                posix.chdir(order["chdir"])
            for folder in environment.get(b"PATH", b"/bin:/usr/bin").split(b":"):
                path = argv[0].encode() if "/" in argv[0] else folder + b"/" + argv[0].encode()
                try:
                    posix.execve(path, argv, environment)
                except OSError:
                    continue
            program.write(2, f"salloc: error: {argv[0]}: command not found\n".encode())
        finally:
            os._exit(127)
    signal.signal(signal.SIGTERM, lambda number, _: posix.kill(pid, number))
    signal.signal(signal.SIGHUP, lambda number, _: posix.kill(pid, number))
    while True:
        try:
            _, status = posix.waitpid(pid, 0)
        except InterruptedError:
            continue
        code = posix.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def is_command_of(order: dict[str, Any], argv: list[str]) -> bool:
    """Whether the command is the end of the command line, in a folder that it names."""
    words = [program.whole(word) for word in argv]
    command: list[str] = order["argv"]
    return words[len(words) - len(command) :] == command and (
        not order["chdir"] or any(word.endswith(order["chdir"]) for word in words)
    )


def is_copy_of(order: dict[str, Any], argv: list[str]) -> bool:
    words = [program.whole(word) for word in argv]
    return order["source"] in words and order["target"] in words


def open_source(source: str) -> int | None:
    """None: it cannot be read, which was reported."""
    try:
        if os.path.isdir(source):
            raise IsADirectoryError(21, "Is a directory")
        return os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        text = f"sbcast: error: Can't open `{source}`: {error.strerror}\n"
        program.write(2, text.encode(errors="surrogateescape"))
        return None


def header_of(source: int) -> bytes:
    """The line before a file's content; see odcd.slurm.commands.sbcast."""
    status = os.fstat(source)
    return f"{status.st_mode & 0o777:o} {int(status.st_mtime)}\n".encode()


def copy_file(order: dict[str, Any]) -> int:
    """The exit code: as in Slurm, the number of the node's error."""
    source = open_source(order["source"])
    if source is None:
        return NO_SOURCE
    target = order["target"]
    fresh: str | None = None
    try:
        if os.path.isdir(target):
            raise IsADirectoryError(21, "Is a directory")
        if os.path.lexists(target) and not order["force"]:
            raise FileExistsError(17, "File exists")
        # Never a file or a link that another user has put there.
        name = f"{target}.{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writing = os.open(name, flags, 0o600)
        fresh = name
        try:
            while data := os.read(source, PIECE_BYTES):
                program.write(writing, data)
            status = os.fstat(source)
            os.fchmod(writing, status.st_mode & 0o777)
        finally:
            os.close(writing)
        if order["preserve"]:
            os.utime(fresh, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(fresh, target)
    except OSError as error:
        if fresh is not None:
            try:  # noqa: SIM105 (contextlib costs 3 ms)
                os.unlink(fresh)
            except OSError:
                pass
        text = f"sbcast: error: REQUEST_FILE_BCAST({order['node']}): {error.strerror}\n"
        program.write(2, text.encode())
        return error.errno or 1
    finally:
        os.close(source)
    return 0
