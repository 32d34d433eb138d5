"""The commands that go on while something runs: srun, salloc, sattach and sbcast.

Besides the frames that program.py describes, the answer has these:

    p  the position in the output: if the connection breaks, the request is sent again with the
       last one, so that no output is lost or printed twice
    s  the step has started, in lines: the path for input and signals, its name, the number of its
       tasks, and flags: i it takes input, p it has a terminal
    d  the number of a task that has ended
    c  a command to run here on an allocation, as JSON
    k  a file to copy here, as JSON
    u  the path of a file that is the step's input

A second thread sends input, signals and acknowledgements, so the first one only prints. Each
signal wakes it, wherever the first one is.

While a program of the step has the terminal, ours is raw. It is the user's again while the daemon
is away: then Ctrl-C, TERM and HUP end the command.
"""

from __future__ import annotations

import posix
import time

from odcctl.remote import exchange, program
from odcctl.remote.upstream import Upstream

TYPE_CHECKING = False
"""Known to type checkers; the module typing would double the time of a start."""

if TYPE_CHECKING:
    import signal

    from odcctl.remote.own_terminal import OwnTerminal
    from odcctl.remote.upstream import Post
else:
    import _signal as signal  # without enum, which takes as long as the rest of a start

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
             signal.SIGALRM)  # fmt: skip
AGAIN_S = 1.0
"""A second Ctrl-C within this time ends the step."""
AWAY_S = 4.0
"""How long a daemon may be away before the command has begun."""
ACKNOWLEDGE_BYTES = 1 << 20
NULL_DEVICE = posix.makedev(1, 3)


def converse(name: str, argv: list[str], send: program.Exchange, post: Post) -> int:
    return _Conversation(name, argv, send, post).run()


class _Conversation:
    def __init__(self, name: str, argv: list[str], send: program.Exchange, post: Post) -> None:
        self._name = name
        self._argv = argv
        self._send = send
        self._upstream = Upstream(post, self._pass_on)
        self._files: dict[str, str] = {}
        self._position: str | None = None
        self._key = posix.urandom(16).hex()
        self._printed = self._acknowledged = 0
        self._live: set[int] = set()
        self._interrupted_at = 0.0
        self._signals = 0
        self._accepted = self._begun = False
        """Whether the daemon has accepted the request, and whether the step has started."""
        self._heard = False
        """Whether anything has arrived since the connection was last lost."""
        self._terminal: OwnTerminal | None = None
        """None: the step has no terminal, or we have none."""
        self._away = False
        """Whether the connection was lost after the step had begun, and is not back."""
        self._code: int | None = None

    def run(self) -> int:
        signal.signal(signal.SIGINT, self._on_interrupt)
        if self._name == "srun" and posix.isatty(0):
            # A program should find the right size at its start.
            size = posix.get_terminal_size(0)
            posix.environ[b"SLURM_PTY_WIN_ROW"] = str(size.lines).encode()
            posix.environ[b"SLURM_PTY_WIN_COL"] = str(size.columns).encode()
        until = time.monotonic() + AWAY_S
        try:
            while self._code is None:
                try:
                    self._exchange()
                    if self._code is None:
                        raise exchange.Lost(exchange.AWAY)
                except exchange.Trouble as trouble:
                    if self._accepted and self._heard:
                        self._heard = False
                        until = time.monotonic() + program.RESUME_FOR_S
                    temporary = isinstance(trouble, exchange.Lost) or self._accepted
                    if not temporary or time.monotonic() > until:
                        self._restore_terminal()
                        start = program.TROUBLE.get(self._name, f"{self._name}: error: ")
                        program.write(2, f"{start}{trouble}\n".encode())
                        return 1
                    self._lose()
                    time.sleep(0.2)
        finally:
            signal.set_wakeup_fd(-1)
            self._restore_terminal()
        return self._code

    def _exchange(self) -> None:
        """One request and its answer, as far as it comes."""
        body = program.request(self._argv, self._name, self._files, self._position)
        if _is_null(0) and self._name != "sbcast":
            body = body[:-1] + b',"no_input":true}'
        for kind, content in program.frames(self._send(body, self._key)):
            if kind == b"f":
                self._need(content.decode())
                return
            self._obey(kind, content)
            if self._code is not None:
                return

    def _need(self, path: str) -> None:
        if path != "-" and path not in self._argv:
            # The server may belong to another user, who must not choose which file is sent.
            program.write(2, f"{self._name}: error: the server asked for {path}\n".encode())
            self._code = 1
            return
        text = program.read_file(self._name, path)
        if text is None:
            self._code = 1
            return
        self._files[path] = text
        self._key = posix.urandom(16).hex()
        self._exchange()

    def _obey(self, kind: bytes, content: bytes) -> None:
        self._heard = True
        if self._away:
            self._away = False
            if self._terminal is not None:
                self._terminal.take()
        if kind == b"o":
            program.write(1, content)
        elif kind == b"e":
            self._report(content)
        elif kind == b"p":
            self._position = content.decode()
            at = self._position.partition('"at":')[2]
            self._printed = int("".join(c for c in at.partition(",")[0] if c.isdigit()) or 0)
            if self._printed - self._acknowledged >= ACKNOWLEDGE_BYTES:
                self._acknowledged = self._printed
                self._upstream.tell(f'{{"acknowledged":{self._printed}}}')
        elif kind == b"r":
            self._accepted = True
        elif kind == b"s":
            self._accepted = True
            self._start(content)
        elif kind == b"d":
            self._live.discard(int(content))
        elif kind in (b"c", b"k", b"u"):
            from odcctl.remote import here

            self._code = here.act(self._name, self._argv, kind, content, self._upstream)
        elif kind == b"x":
            self._code = int(content)

    # -- a step -----------------------------------------------------------------------------------

    def _start(self, content: bytes) -> None:
        path, name, tasks, flags = content.decode().split("\n")
        if not self._begun:
            self._begun = True
            self._live = set(range(int(tasks)))
            for number in (*FORWARDED, signal.SIGWINCH, signal.SIGCONT):
                signal.signal(number, self._on_signal)
            if "p" in flags and posix.isatty(0):
                from odcctl.remote.own_terminal import OwnTerminal

                self._terminal = OwnTerminal(self._upstream.tell)
                self._terminal.take()
            self._upstream.begin(path, name, takes_input="i" in flags)

    def _on_signal(self, number: int, _frame: object) -> None:
        """Runs in the first thread; _pass_on in the other."""
        if number not in FORWARDED or self._terminal is None:
            return
        if self._away or self._upstream.signals < self._signals:
            # It, or the one before, may be ignored for minutes.
            self._leave(number)
        self._signals += 1

    def _on_interrupt(self, number: int, _frame: object) -> None:
        if not self._begun or self._name == "sbcast":
            if self._name == "srun":
                program.write(2, b"srun: Cancelled pending job step with signal 2\n")
            posix._exit(130)  # pyright: ignore[reportPrivateUsage]
        if self._away:
            if self._terminal is not None:
                self._leave(number)
            self._interrupted()

    def _pass_on(self, number: int) -> None:
        if number in FORWARDED:
            self._upstream.tell(f'{{"signal":{number}}}')
        elif number == signal.SIGINT:
            self._interrupted()
        elif self._terminal is not None:
            self._terminal.on_signal(number)

    def _leave(self, number: int) -> None:
        """The daemon ends the step, as no one continues it."""
        self._restore_terminal()
        posix._exit(128 + number)  # pyright: ignore[reportPrivateUsage]

    def _interrupted(self) -> None:
        now = time.monotonic()
        name = self._upstream.name
        if now - self._interrupted_at < AGAIN_S:
            self._report(f"srun: sending Ctrl-C to StepId={name}\n".encode())
            if self._away:
                self._leave(signal.SIGINT)
            self._upstream.tell('{"signal":2}')
            self._upstream.tell('{"abort":true}')
            return
        self._interrupted_at = now
        tasks = sorted(self._live)
        which = f"task{'s' if len(tasks) > 1 else ''} {_ranges(tasks)}"
        self._report(b"srun: interrupt (one more within 1 sec to abort)\n"
                     + f"srun: StepId={name} {which}: running\n".encode())  # fmt: skip

    # -- the terminal -----------------------------------------------------------------------------

    def _restore_terminal(self) -> None:
        if self._terminal is not None:
            self._terminal.restore()

    def _lose(self) -> None:
        """The connection is lost. In a raw terminal, no key could end us until it is back."""
        if not self._begun or self._away:
            return
        self._away = True
        if self._terminal is not None:
            self._restore_terminal()
            program.write(2, f"\n{self._name}: error: The connection to the server is lost. Trying "
                          "again; press Ctrl-C to leave.\n".encode())  # fmt: skip

    def _report(self, text: bytes) -> None:
        """In a raw terminal, a line feed does not return to the left."""
        if self._terminal is not None and self._terminal.is_raw and posix.isatty(2):
            text = text.replace(b"\n", b"\r\n")
        program.write(2, text)


def _is_null(number: int) -> bool:
    try:
        status = posix.fstat(number)
    except OSError:
        return True
    return status.st_rdev == NULL_DEVICE and status.st_mode & 0o170000 == 0o020000


def _ranges(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
