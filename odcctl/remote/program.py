"""One small program with many names: squeue, sbatch, scancel, … (see names.py).

Programs that drive Slurm start these commands every second, so a start must cost little. This
module is run by `python -I -S` and imports only what the interpreter has built in. It knows no
option of any command: it sends its arguments to the daemon and prints the bytes that come back.

The request is POST /v1/slurm/NAME with JSON, which odcd.api.slurm.request.RemoteCall describes.
The answer is a sequence of frames: one byte for the kind, four for the length (big endian), then
the content.

    o  bytes for standard output
    e  bytes for standard error
    f  the path of a file that the daemon needs; "-" is standard input. The request is sent again
       with its text. A file that the command line does not name is not sent
    r  a token: if the connection breaks from now on, the request is sent again with it
    x  the exit code, in decimal; the last frame

Over TCP, over_tcp.py sends the same request with the API key that odcctl uses.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  (the built-in part of signal)
import posix
import sys
import time
from _json import encode_basestring_ascii as quoted

from odcctl.remote.exchange import ANSWER_TIMEOUT_S, CHUNK, Lost, Trouble, exchange

TYPE_CHECKING = False  # typing's costs more time than the rest of a command
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Exchange = Callable[[bytes, str], Iterator[bytes]]
    """Sends a body with an idempotency key and yields the answer's body in pieces. Raises
    Trouble."""

ROOT_HOME = "/var/lib/odc"
ROOT_SOCKET = "/run/odc/odcd.sock"
RESUME_FOR_S = 600.0
MAX_FILE_BYTES = 8 << 20
"""Twice the daemon's limit for a script: a longer one is rejected there."""

CRON = "scrontab"
INTERACTIVE = frozenset({"srun", "salloc", "sattach", "sbcast"})
WHOLE_ENVIRONMENT = frozenset({"sbatch", "srun", "salloc"})
OTHER_VARIABLES = (
    "SLURM", "SQUEUE_", "SINFO_", "SACCT_", "SBCAST_", "SCANCEL_", "SCONTROL_", "SPRIO_",
)  # fmt: skip
"""The prefixes of the variables that the other commands read; nothing else leaves the process."""

TROUBLE = {
    "sbatch": "sbatch: error: Batch job submission failed: ",
    "srun": "srun: error: Unable to allocate resources: ",
    "salloc": "salloc: error: Job submit/allocate failed: ",
    "squeue": "slurm_load_jobs error: ",
    "scontrol": "slurm_load_jobs error: ",
    "scancel": "slurm_load_jobs error: ",
    "seff": "slurm_load_jobs error: ",
    "sinfo": "slurm_load_partitions: ",
    "sacct": "sacct: error: Problem talking to the database: ",
    "sacctmgr": "sacctmgr: error: Problem talking to the database: ",
    "sshare": "sshare: error: Problem talking to the database: ",
    "sprio": "sprio: error: ",
    "sdiag": "slurm_get_statistics: ",
}
"""How each of Slurm's commands begins its report that the controller cannot be reached."""


class OverTcp(Exception):
    """The server is not a socket of this machine."""


def main(default: str = "") -> int:
    """default: the socket to use if the environment names no server."""
    name = sys.argv[0].rpartition("/")[2]
    argv = sys.argv[1:]
    if name == "scontrol" and "requeue" in (word.lower()[:7] for word in argv):
        # A job that requeues itself is about to be ended. Its caller must still get the answer: a
        # client that takes the requeue for failed reports an error as the job's result.
        _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    if name == CRON:
        return recurring_jobs(argv, default)
    try:
        paths = sockets(default)
    except OverTcp:
        remote = f"from odcctl.remote.over_tcp import main; raise SystemExit(main({name!r}))"
        posix.execv(sys.executable, [sys.executable, "-I", "-c", remote, *argv])
    try:
        if name in INTERACTIVE:
            from odcctl.remote import interactive, upstream

            return interactive.converse(
                name, argv, lambda body, key: exchange(paths, name, body, key),
                lambda path, body: upstream.post_to(paths, path, body),
            )  # fmt: skip
        return converse(name, argv, lambda body, key: exchange(paths, name, body, key))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141


def recurring_jobs(argv: list[str], default: str) -> int:
    """scrontab is odcctl cron: it starts an editor and asks, and no program calls it often."""
    environment = {**posix.environ}
    if default and not {b"ODC_SERVER", b"ODC_HOME"} & environment.keys():
        environment[b"ODC_SERVER"] = f"unix:{default}".encode()
    words = [word for word in argv if word != "-v"]
    # crontab and scrontab remove without a question.
    yes = ["--yes"] if any(w[:1] == "-" and w[1:2] != "-" and "r" in w for w in words) else []
    posix.execve(
        sys.executable, [sys.executable, "-I", "-m", "odcctl", "cron", *yes, *words], environment
    )


def converse(name: str, argv: list[str], send: Exchange) -> int:
    """Send the command until its exit code arrives; return that."""
    files: dict[str, str] = {}
    token: str | None = None
    key = posix.urandom(16).hex()
    until = 0.0
    while True:
        needed: str | None = None
        try:
            for kind, content in frames(send(request(argv, name, files, token), key)):
                if kind == b"o":
                    write(1, content)
                elif kind == b"e":
                    write(2, content)
                elif kind == b"f":
                    needed = content.decode()
                elif kind == b"r":
                    token = content.decode()
                    until = time.monotonic() + RESUME_FOR_S
                elif kind == b"x":
                    return int(content)
        except Trouble as trouble:
            # Sent again with its key, a submit that was accepted is not made twice.
            if isinstance(trouble, Lost) and not until and name == "sbatch":
                until = time.monotonic() + ANSWER_TIMEOUT_S
            if time.monotonic() > until:
                write(2, f"{TROUBLE.get(name, f'{name}: error: ')}{trouble}\n".encode())
                return 1
            time.sleep(0.2)
            continue
        if needed is None:
            write(2, f"{name}: error: the daemon sent no exit code\n".encode())
            return 1
        if needed != "-" and needed not in argv:
            # The server may belong to another user, who must not choose which file is sent.
            asked = f"{name}: error: the server asked for {needed}, which was not named\n"
            write(2, asked.encode())
            return 1
        content = read_file(name, needed)
        if content is None:
            return 1
        files[needed] = content
        key = posix.urandom(16).hex()


def sockets(default: str) -> list[str]:
    """The sockets to try, in order. Raises OverTcp."""
    environment = posix.environ
    named = environment.get(b"ODC_SERVER", b"").decode(errors="surrogateescape")
    if named:
        if named.startswith(("http://", "https://")):
            raise OverTcp
        return [named.removeprefix("unix:")]
    home = environment.get(b"ODC_HOME", b"").decode(errors="surrogateescape")
    if home:
        own = f"{home}/odcd.sock"
        return [own, ROOT_SOCKET] if home.rstrip("/") == ROOT_HOME else [own]
    if default:
        return [default]
    user = environment.get(b"HOME", b"/").decode(errors="surrogateescape")
    config = environment.get(b"XDG_CONFIG_HOME", b"").decode(errors="surrogateescape")
    try:
        posix.stat(f"{config or f'{user}/.config'}/odcctl/config.toml")
    except OSError:
        return [f"{user}/.odc/odcd.sock", ROOT_SOCKET]
    raise OverTcp  # it may name a server: odcctl reads it


def request(argv: list[str], name: str, files: dict[str, str], token: str | None) -> bytes:
    """The body, as JSON."""
    sent: list[str] = []
    for variable, value in posix.environ.items():
        try:
            pair = variable.decode(), value.decode()
        except UnicodeDecodeError:
            continue
        if name in WHOLE_ENVIRONMENT or pair[0] == "TZ" or pair[0].startswith(OTHER_VARIABLES):
            sent.append(f"{quoted(pair[0])}:{quoted(pair[1])}")
    mask = posix.umask(0o077)
    posix.umask(mask)
    try:
        work_dir = posix.getcwd()
    except OSError:
        work_dir = "/"
    words = [whole(word) for word in (work_dir, *argv)]
    texts = ",".join(f"{quoted(path)}:{quoted(text)}" for path, text in files.items())
    terminals = ",".join("true" if posix.isatty(number) else "false" for number in range(3))
    body = (
        f'{{"argv":[{",".join(map(quoted, words[1:]))}],"work_dir":{quoted(words[0])},'
        f'"environment":{{{",".join(sent)}}},"umask":{mask},"terminals":[{terminals}],'
        f'"host":{quoted(posix.uname().nodename)},"files":{{{texts}}},'
        f'"token":{"null" if token is None else quoted(token)}}}'
    )
    return body.encode()


def whole(text: str) -> str:
    """Bytes that are not UTF-8 are replaced: no name in odc has them."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def frames(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    buffer = b""
    for piece in pieces:
        buffer += piece
        while len(buffer) >= 5:
            end = 5 + int.from_bytes(buffer[1:5])
            if len(buffer) < end:
                break
            yield buffer[:1], buffer[5:end]
            buffer = buffer[end:]


def read_file(name: str, path: str) -> str | None:
    """The text of a file; "-" is standard input. None: it cannot be read, which was reported."""
    found = path if path == "-" or "/" in path or _is_file(path) else _on_path(path)
    pieces: list[bytes] = []
    try:
        number = 0 if path == "-" else posix.open(found, posix.O_RDONLY | posix.O_CLOEXEC)
        size = 0
        while size < MAX_FILE_BYTES and (piece := posix.read(number, CHUNK)):
            pieces.append(piece)
            size += len(piece)
    except OSError as error:
        write(2, f"{name}: error: Unable to open file {path}\n".encode(errors="replace"))
        if error.errno not in (2, 20):
            write(2, f"{name}: error: {error.strerror}\n".encode())
        return None
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError:
        write(2, f"{name}: error: {path} is not UTF-8 text\n".encode(errors="replace"))
        return None


def _is_file(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _on_path(name: str) -> str:
    for folder in posix.environ.get(b"PATH", b"").decode(errors="surrogateescape").split(":"):
        if folder and _is_file(f"{folder}/{name}"):
            return f"{folder}/{name}"
    return name


def write(number: int, data: bytes) -> None:
    while data:
        data = data[posix.write(number, data) :]
