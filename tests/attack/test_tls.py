"""TLS on TCP: checks at the start, effects of changed files, and the servers that odcctl trusts."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from odcd.clock import SystemClock
from odcd.errors import OdcError
from odcd.front.rules import Rules
from odcd.front.settings import FrontSettings
from odcd.front.tls import Certificate
from tests.attack.doors import Opened, opened, received, status
from tests.attack.front import connected, limited, tcp
from tests.support.harness.daemon import Odc, new_odc, wait

long = pytest.mark.long
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Files:
    """A certificate with its key in two files, and the authority that signed it."""

    def __init__(self, folder: Path) -> None:
        self.cert, self.key, self.ca = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
        self.authority = trustme.CA()
        self.write()

    def write(self) -> None:
        """A new certificate that replaces the old one."""
        issued = self.authority.issue_cert("localhost", "127.0.0.1", "0.0.0.0")
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        for path, data in ((self.key, issued.private_key_pem.bytes()), (self.cert, chain)):
            path.with_suffix(".new").write_bytes(data)
            path.with_suffix(".new").rename(path)
        self.authority.cert_pem.write_to_path(str(self.ca))

    @property
    def settings(self) -> FrontSettings:
        return FrontSettings(tls_cert=self.cert, tls_key=self.key)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))


@pytest.fixture
def files(folder: Path) -> Files:
    return Files(folder)


def greeted(door: Opened, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(connected(door.place), server_hostname="localhost")


def test_tcp_speaks_tls_and_the_socket_does_not(folder: Path, files: Files) -> None:
    with opened(folder, front=files.settings) as door:
        with greeted(door, files.trust()) as connection:
            connection.sendall(REQUEST)
            assert status(received(connection)) == 200
            assert connection.version() in ("TLSv1.2", "TLSv1.3")
        with connected(str(door.path)) as connection:
            connection.sendall(REQUEST)
            assert status(received(connection)) == 200
        assert [scope["scheme"] for scope in door.seen] == ["https", "http"]
        with connected(door.place) as connection:
            connection.sendall(REQUEST)
            assert status(received(connection)) == 0
        wait(lambda: door.counts.open == 0 or None, lambda: str(door.counts))


def test_tls_older_than_1_2_is_refused(folder: Path, files: Files) -> None:
    old = files.trust()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        opened(folder, front=files.settings) as door,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        greeted(door, old)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"])
def test_a_handshake_that_never_ends_is_cut(folder: Path, files: Files, sent: bytes) -> None:
    with opened(folder, front=files.settings, rules=Rules(head_s=0.5)) as door:
        with connected(door.place) as connection:
            connection.sendall(sent)
            assert received(connection) == b""
        wait(lambda: door.counts.rejected["tls"] == 1 or None, lambda: str(door.counts))
        wait(lambda: door.counts.open == 0 or None, lambda: str(door.counts))


def test_a_request_that_never_comes_is_not_waited_for(folder: Path, files: Files) -> None:
    with (
        opened(folder, front=files.settings, rules=Rules(head_s=0.5)) as door,
        greeted(door, files.trust()) as connection,
    ):
        assert status(received(connection)) == 408


def test_connections_are_counted_from_before_the_handshake(folder: Path, files: Files) -> None:
    front = replace(files.settings, connections=16, per_user=2)
    with opened(folder, front=front) as door:
        waiting = [connected(door.place) for _ in range(2)]
        wait(lambda: door.counts.open == 2 or None, lambda: str(door.counts))
        with connected(door.place) as third:
            assert received(third) == b""
        assert door.counts.refused["user"] == 1
        for connection in waiting:
            connection.close()
        wait(lambda: door.counts.open == 0 or None, lambda: str(door.counts))
        with greeted(door, files.trust()) as connection:
            connection.sendall(REQUEST)
            assert status(received(connection)) == 200


def test_a_changed_certificate_is_for_new_connections(folder: Path, files: Files) -> None:
    with opened(folder, front=files.settings) as door:
        first = greeted(door, files.trust())
        before = first.getpeercert(binary_form=True)
        files.write()

        def changed() -> bool | None:
            with greeted(door, files.trust()) as connection:
                return connection.getpeercert(binary_form=True) != before or None

        wait(changed, lambda: "the old certificate")
        with first:
            first.sendall(REQUEST)
            assert status(received(first)) == 200


def test_a_broken_change_leaves_the_old_certificate(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    class Later(SystemClock):
        now_s = 0.0

        def monotonic(self) -> float:
            self.now_s += 100
            return self.now_s

    certificate = Certificate(files.cert, files.key, Later())
    good = certificate.context()
    files.cert.write_text("half of a")
    assert certificate.context() is good
    assert certificate.context() is good
    assert [record.getMessage() for record in caplog.records] == ["tls.reload_failed"]
    files.write()
    assert certificate.context() is not good


def test_files_that_cannot_be_used_are_named(files: Files) -> None:
    other = files.key.with_name("other.pem")
    trustme.CA().issue_cert("x").private_key_pem.write_to_path(str(other))
    locked = files.key.with_name("locked.pem")
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )  # fmt: skip
    for cert, private, why in (
        (files.cert, other, "does not belong to the certificate"),
        (files.cert, locked, "cannot use"),
        (files.key, files.key, "cannot use"),
        (files.cert, files.cert, "cannot use"),
        (files.cert, files.key.with_name("none"), "cannot be read"),
        (files.key.parent, files.key, "cannot be read"),
    ):
        with pytest.raises(OdcError, match=why) as refused:
            Certificate(cert, private, SystemClock())
        assert refused.value.hint


@pytest.fixture
def home() -> Generator[Odc]:
    with new_odc() as odc:
        yield odc


def ask(odc: Odc, server: str, **environment: str) -> subprocess.CompletedProcess[str]:
    before = dict(odc.environment)
    odc.environment |= {"ODC_SERVER": server, **environment}
    try:
        return odc.odcctl("queue", check=False)
    finally:
        odc.environment.clear()
        odc.environment |= before


@long
def test_odcctl_speaks_to_a_server_that_it_can_verify(home: Odc, files: Files) -> None:
    if os.geteuid() == 0:
        for path in (files.key, files.cert, files.ca):
            path.chmod(0o644)
    argv = ("--tls-cert", str(files.cert), "--tls-key", str(files.key))
    with limited(home, *argv, environment={"ODC_LISTEN": "127.0.0.1:0"}):
        status_, answer = home.request("POST", "/v1/page/tickets")
        assert (status_, answer["url"].partition("://")[0]) == (201, "https")
        token = home.odcd("token", "root", "--hours", "1").stdout.strip()
        host, port = tcp(home)
        server = f"https://{host}:{port}"
        done = ask(home, server, ODC_TOKEN=token, ODC_CA_FILE=str(files.ca))
        assert (done.returncode, done.stderr) == (0, "")
        unknown = ask(home, server, ODC_TOKEN=token)
        assert unknown.returncode == 3
        assert "its certificate is not trusted" in unknown.stderr
        wrong = ask(home, server, ODC_TOKEN=token, ODC_CA_FILE=str(files.key))
        assert wrong.returncode == 2
        assert "cannot be used" in wrong.stderr
        log = home.home.with_name(f"{home.home.name}.log").read_text()
        assert "http.clear_text" not in log


@long
def test_keys_in_clear_are_warned_of_at_both_ends(home: Odc) -> None:
    with limited(home, environment={"ODC_LISTEN": "0.0.0.0:0"}):
        log = home.home.with_name(f"{home.home.name}.log").read_text()
        assert "http.clear_text" in log
        token = home.odcd("token", "root", "--hours", "1").stdout.strip()
        port = tcp(home)[1]
        here, elsewhere = f"http://127.0.0.1:{port}", f"http://0.0.0.0:{port}"
        assert ask(home, here, ODC_TOKEN=token).stderr == ""
        warned = ask(home, elsewhere, ODC_TOKEN=token)
        assert warned.returncode == 0
        assert warned.stderr.count("has no TLS") == 1
        assert ask(home, elsewhere, ODC_TOKEN=token, ODC_ALLOW_HTTP="1").stderr == ""
        assert "has no TLS" not in ask(home, elsewhere).stderr


@long
def test_a_daemon_does_not_start_with_a_certificate_it_cannot_use(home: Odc) -> None:
    home.environment["ODC_LISTEN"] = "127.0.0.1:0"
    done = home.odcd("up", "--node", "n1=h100:8", "--tls-cert", "/nonexistent", check=False)
    assert done.returncode == 1
    assert "the TLS certificate /nonexistent cannot be read" in done.stderr
