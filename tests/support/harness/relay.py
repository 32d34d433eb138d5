"""A connection to PostgreSQL that a test can cut like a network failure: no data passes, and
neither side gets an error."""

from __future__ import annotations

import re
import selectors
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit


class Relay:
    """Passes connections of one Unix socket to another; dsn: through the relay."""

    def __init__(self, dsn: str) -> None:
        query = parse_qs(urlsplit(dsn).query)
        port = query.get("port", ["5432"])[0]
        self._behind = f"{query['host'][0]}/.s.PGSQL.{port}"
        self._folder = Path(tempfile.mkdtemp(prefix="odc-relay-"))
        self._folder.chmod(0o755)
        path = self._folder / f".s.PGSQL.{port}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o777)
        self._listener.listen(64)
        self.dsn = re.sub(r"host=[^&]+", f"host={quote(str(self._folder), safe='')}", dsn)
        self._selector = selectors.DefaultSelector()
        self._open = threading.Event()
        self._open.set()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def cut(self) -> None:
        """No data passes from now on, in either direction; new connections get no answer."""
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def __enter__(self) -> Relay:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._open.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        while not self._over:
            self._open.wait()
            for key, _ in self._selector.select(timeout=0.1):
                if not self._open.is_set():
                    break
                if key.data is None:
                    self._accept()
                else:
                    self._pass_on(key.fileobj, key.data)  # pyright: ignore[reportArgumentType]

    def _accept(self) -> None:
        ours, _ = self._listener.accept()
        theirs = socket.socket(socket.AF_UNIX)
        theirs.connect(self._behind)
        for one, other in ((ours, theirs), (theirs, ours)):
            self._selector.register(one, selectors.EVENT_READ, other)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        if one.fileno() < 0:  # closed with its other side in this very round
            return
        try:
            data = one.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for side in (one, other):
            if side.fileno() >= 0:
                self._selector.unregister(side)
                side.close()
