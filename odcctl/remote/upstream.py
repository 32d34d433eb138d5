"""The messages of srun to a running step: input, signals, the window's size, acknowledgements."""

from __future__ import annotations

import _thread
import posix
import select
import time

from odcctl.remote import exchange, program

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    Post = Callable[[str, bytes], bytes]
else:
    import _signal as signal  # without enum, as in interactive.py

INPUT_BYTES = 1 << 16
FILE_BYTES = 3 << 17
"""Of a file: less often, as each piece takes a request."""
TOO_MANY = 429
"""The user has too many requests in progress: a message that is dropped would be lost."""


class Upstream:
    """The thread that sends what the client has for the step."""

    def __init__(self, post: Post, on_signal: Callable[[int], None]) -> None:
        """post: sends a body to a path of the API, and returns the answer. Raises
        exchange.Trouble. on_signal: is called for each signal, in this thread."""
        self.post = post
        self._on_signal = on_signal
        self.name = ""
        self._path = ""
        self._messages: list[str] = []
        self._woken, self._wake = posix.pipe()
        posix.set_blocking(self._wake, False)
        self._takes_input = False
        self._input = 0
        self._piece_bytes = INPUT_BYTES
        self._before = b""
        """The line before the content of a file."""
        self._offset = 0
        self.signals = 0
        """How many have arrived."""

    def begin(self, path: str, name: str, *, takes_input: bool) -> None:
        self._path, self.name, self._takes_input = path, name, takes_input
        # A signal that arrives just before the first thread waits would not wake it.
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        _thread.start_new_thread(self._run, ())

    @property
    def has_source(self) -> bool:
        return self._input != 0

    def send_file(self, source: int, before: bytes) -> None:
        """The input is an open file, and not standard input."""
        self._input, self._before, self._piece_bytes = source, before, FILE_BYTES

    def tell(self, message: str) -> None:
        """Messages are sent in their order."""
        self._messages.append(message)
        try:
            posix.write(self._wake, b"\0")
        except OSError:
            return

    def _run(self) -> None:
        while True:
            channels = [self._woken, self._input] if self._takes_input else [self._woken]
            try:
                ready, _, _ = select.select(channels, [], [])
            except (OSError, ValueError):
                return
            if self._woken in ready:
                for number in posix.read(self._woken, 4096):
                    if number:
                        self._on_signal(number)
            if not self._send_messages():
                return
            if self._input in ready and not self._read():
                return

    def _read(self) -> bool:
        """Send one piece of the input; False: the step is over."""
        import _json
        import binascii

        try:
            data, self._before = self._before or posix.read(self._input, self._piece_bytes), b""
        except OSError:
            if self.has_source:  # its end would not be that of the file
                self._takes_input = False
                return self._ask('{"abort":true}') is not None
            data = b""
        if not data:
            self._takes_input = False
        text = binascii.b2a_base64(data, newline=False).decode()
        message = f'{{"input":{self._offset},"data":{_json.encode_basestring_ascii(text)}}}'
        self._offset += len(data)
        while True:
            answer = self._ask(message)
            if answer is None or b'"live":false' in answer:
                self._takes_input = False
                return answer is not None
            if b'"input":null' not in answer or not data:
                return True
            if not self._send_messages():
                return False

    def _send_messages(self) -> bool:
        """False: the daemon did not answer for a long time."""
        while self._messages:
            message = self._messages.pop(0)
            if self._ask(message) is None:
                return False
            self.signals += "signal" in message
        return True

    def _ask(self, message: str) -> bytes | None:
        """None: the daemon did not answer for a long time."""
        try:
            return self.insist(self._path, message.encode())
        except exchange.Lost:
            return None
        except exchange.Trouble:
            # The step is over.
            return b'{"live":false}'

    def insist(self, path: str, body: bytes) -> bytes:
        """Send it until the daemon answers, for as long as it may be away. Raises
        exchange.Trouble."""
        until = time.monotonic() + program.RESUME_FOR_S
        while True:
            try:
                return self.post(path, body)
            except exchange.Lost:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


def post_to(paths: list[str], path: str, body: bytes) -> bytes:
    """One request over the first socket that accepts. Raises exchange.Trouble, and its Lost when
    the daemon did not answer, or is away."""
    try:
        connection = exchange.connect(paths)
    except exchange.Trouble as trouble:
        raise exchange.Lost(str(trouble)) from None
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        connection.settimeout(exchange.ANSWER_TIMEOUT_S)
        connection.sendall(head.encode() + body)
        received = b""
        while piece := connection.recv(exchange.CHUNK):
            received += piece
    except TimeoutError:
        raise exchange.Lost(exchange.SILENT) from None
    except OSError as error:
        raise exchange.Lost(f"{exchange.AWAY}: {error.strerror}") from None
    finally:
        connection.close()
    top, _, content = received.partition(b"\r\n\r\n")
    if not top:
        raise exchange.Lost(exchange.AWAY)
    status = int(top.split(b" ", 2)[1])
    if status >= 500 or status == TOO_MANY:
        raise exchange.Lost(exchange.AWAY)
    if status >= 300:
        raise exchange.Trouble(exchange.problem(status, content))
    return content
