"""The certificate of the TCP listener, loaded again when its files change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path

from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.front.proxies import read_address
from odcd.front.settings import FrontSettings

log = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0
Stamp = tuple[tuple[int, int, int], ...]


class Certificate:
    """context() is for the next connection; open connections keep theirs."""

    def __init__(self, cert: Path, key: Path | None, clock: Clock) -> None:
        """Raises OdcError when the files cannot be used."""
        self._cert = cert
        self._key = key or cert
        self._clock = clock
        self._checked = clock.monotonic()
        self._stamp = self._stamp_now()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        now = self._clock.monotonic()
        if now < self._checked + CHECK_EVERY_S:
            return self._context
        self._checked = now
        stamp = self._stamp_now()
        # A missing file is being replaced, and will exist again in a moment.
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            try:
                self._context = self._load()
                log.info("tls.reloaded", extra={"certificate": str(self._cert)})
            except OdcError as error:
                log.error(
                    "tls.reload_failed", extra={"error": error.message, "hint": error.hint}
                )  # fmt: skip
        return self._context

    def _stamp_now(self) -> Stamp | None:
        try:
            found = [path.stat() for path in (self._cert, self._key)]
        except OSError:
            return None
        return tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in found)

    def _load(self) -> ssl.SSLContext:
        for path, what in ((self._cert, "certificate"), (self._key, "key")):
            _check_readable(path, what)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Without this, OpenSSL would ask for a password at the terminal. The empty one never
            # fits.
            context.load_cert_chain(self._cert, self._key, password=lambda: b"")
        except ssl.SSLError as error:
            raise _unusable(self._cert, self._key, error) from error
        return context


def warn_of_clear_text(settings: FrontSettings, listens: Sequence[tuple[str, int]]) -> None:
    """Warn operators if API keys cross the network unencrypted."""
    if settings.tls_cert is not None or settings.proxies.trusted:
        return
    for host, port in listens:
        address = read_address(host)
        if address is None or not address.is_loopback:
            log.warning(
                "http.clear_text",
                extra={
                    "listens": f"{host}:{port}",
                    "hint": "API keys travel unencrypted. Give --tls-cert and --tls-key, or put a "
                    "proxy with TLS in front and name it in ODC_TRUSTED_PROXIES.",
                },
            )


def _check_readable(path: Path, what: str) -> None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise OdcError(
            f"the TLS {what} {path} cannot be read: {error.strerror}",
            "The daemon's account must be able to read it: see --tls-cert, --tls-key.",
        ) from error


def _unusable(cert: Path, key: Path, error: ssl.SSLError) -> OdcError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return OdcError(
            f"the TLS key {key} does not belong to the certificate {cert}",
            "Give --tls-key the key that the certificate was made with.",
        )
    return OdcError(
        f"TLS cannot use the certificate {cert} with the key {key}: {error.reason or error}",
        "Both are PEM files; the certificate comes before its chain, and the key has no password.",
    )
