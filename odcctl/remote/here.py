"""The part of salloc and sbcast that happens on the machine where they are called."""

from __future__ import annotations

import os
import posix
import signal
from typing import Any

from odcctl.remote import program

PREFIXES = ("SLURM", "ODC_")
VARIABLES = frozenset({
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPU_DEVICE_ORDINAL", "MASTER_ADDR", "MASTER_PORT",
    "PWD",
})  # fmt: skip
"""Variables that the server may set: it may be of another user, and others can load code."""


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


def copy_file(order: dict[str, Any]) -> int:
    import shutil

    source, target = order["source"], order["target"]
    if target.endswith("/") or os.path.isdir(target):
        target = os.path.join(target, os.path.basename(source))
    fresh: str | None = None
    try:
        if os.path.exists(target) and not order["force"]:
            raise FileExistsError(17, "File exists", target)
        with open(source, "rb") as reading:
            # Never a file or a link that another user has put there.
            name = f"{target}.{os.urandom(6).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o600), "wb") as writing:
                fresh = name
                shutil.copyfileobj(reading, writing)
        shutil.copymode(source, fresh)
        if order["preserve"]:
            shutil.copystat(source, fresh)
        os.replace(fresh, target)
    except OSError as error:
        if fresh is not None:
            try:  # noqa: SIM105 (contextlib costs 3 ms)
                os.unlink(fresh)
            except OSError:
                pass
        program.write(2, f"sbcast: error: {error.filename}: {error.strerror}\n".encode())
        return 1
    return 0
