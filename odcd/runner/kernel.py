"""System calls that the standard library does not offer."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
_JOIN_SESSION_KEYRING = 1
_KERNELS_OWN = frozenset({
    0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x6E736673, 0x27E0EB, 0x63677270,
    0x62656570, 0xCAFE4A11, 0x6165676C, 0xDE5E81E4, 0xF97CFF8C, 0x42494E4D,
})  # fmt: skip
"""procfs, sysfs, debugfs, tracefs, securityfs, nsfs, cgroup, cgroup2, configfs, bpf, pstore,
efivarfs, selinuxfs, binfmt_misc."""


def is_kernels_own(fd: int) -> bool:
    """Whether the file belongs to a file system that shows the kernel's state. A file of /proc/self
    describes the process that opened it. Raises OSError."""
    answer = ctypes.create_string_buffer(512)
    if _libc.fstatfs(fd, answer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The first field, a long, is the type of the file system.
    return ctypes.c_long.from_buffer(answer).value & 0xFFFFFFFF in _KERNELS_OWN


def become_subreaper() -> None:
    """Orphans below this process become its children, not those of init."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def leave_session_keyring() -> bool:
    """Join a new, empty session keyring: jobs must not get root's keyring from the shell that
    started odcd. Returns False if that failed, for example because the kernel has no keyrings."""
    return _KEYCTL is not None and _libc.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, None) > 0


def name_process(name: str) -> None:
    """Set the name that ps -o comm and top show; at most 15 bytes."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def boot_identity() -> str:
    """A value that changes with every restart of the machine or of the container."""
    parts: list[str] = []
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/1/stat"):
        try:
            with open(path, "rb") as file:
                parts.append(file.read().decode(errors="replace").strip())
        except OSError:
            parts.append("?")
    # Field 22 of init's stat is its start time: a restarted container keeps the boot id.
    init_started = parts[1].rpartition(")")[2].split()[19:20]
    return "/".join([parts[0], *init_started, os.readlink("/proc/self/ns/pid")])
